#include "services/worker/engine/job/launcher_store.h"

#include <algorithm>
#include <thread>

#include "common/base/error.h"

namespace ganymede::worker {
namespace {

using collectives::CollectiveError;

constexpr double answer_seconds = 10;  // a launcher that is stopped or busy for so long is a fault

}  // namespace

LauncherStore::LauncherStore(service::Context& context, std::uint64_t generation)
    : context_(context), generation_(generation), client_(context.launcher_client()) {}

void LauncherStore::check_generation() const {
  std::uint64_t now = context_.control().block->generation.load(std::memory_order_acquire);
  if (now != generation_) throw CollectiveError(fmt::format("generation {} is over, {} has begun", generation_, now));
  if (context_.finishing()) throw CollectiveError("the service is asked to finish");
}

msg::Message LauncherStore::call(const msg::Client::Fill& fill) {
  check_generation();
  std::lock_guard lock(mutex_);
  try {
    return client_->call(fill, Deadline::after_seconds(answer_seconds));
  } catch (const Error& error) {
    throw CollectiveError(fmt::format("the launcher's key-value store: {}", error.what()));
  }
}

void LauncherStore::set(const std::string& key, collectives::ConstBytes value) {
  call([&](flatbuffers::FlatBufferBuilder& builder) {
    auto bytes = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(value.data()), value.size());
    return msg::Message::body(fbs::CreateStoreSet(builder, generation_, builder.CreateString(key), bytes));
  });
}

std::vector<std::byte> LauncherStore::get(const std::string& key, Deadline deadline) {
  auto pause = std::chrono::milliseconds(1);
  while (true) {
    msg::Message reply = call([&](flatbuffers::FlatBufferBuilder& builder) {
      return msg::Message::body(fbs::CreateStoreGet(builder, generation_, builder.CreateString(key)));
    });
    const auto* value = reply.as<fbs::StoreValue>();
    if (value != nullptr && value->found()) {
      std::vector<std::byte> bytes(value->value() == nullptr ? 0 : value->value()->size());
      if (!bytes.empty())
        std::copy_n(reinterpret_cast<const std::byte*>(value->value()->data()), bytes.size(), bytes.begin());
      return bytes;
    }
    if (deadline.passed()) throw CollectiveError(fmt::format("key {} did not come", key));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
}

std::int64_t LauncherStore::add(const std::string& key, std::int64_t amount) {
  msg::Message reply = call([&](flatbuffers::FlatBufferBuilder& builder) {
    return msg::Message::body(fbs::CreateStoreAdd(builder, generation_, builder.CreateString(key), amount));
  });
  const auto* value = reply.as<fbs::StoreValue>();
  if (value == nullptr) throw CollectiveError(fmt::format("key {}: the launcher's answer is of another kind", key));
  return value->number();
}

}  // namespace ganymede::worker
