#include "launcher/coordinator/node_link.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "launcher/coordinator/node_messages.h"

namespace ganymede::coordinator {
namespace {

constexpr double answer_seconds = 2;

}  // namespace

NodeLink::NodeLink(const Ways& ways, std::function<void(const NodeWishes&)> wished,
                   std::function<void(int, const std::string&)> refused)
    : client_(ways.endpoint, fmt::format("node.{}", ways.node), ways.job, ways.key),
      wished_(std::move(wished)),
      refused_(std::move(refused)),
      thread_([this] { work(); }) {}

NodeLink::~NodeLink() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void NodeLink::tell(NodeState state) {
  {
    std::lock_guard lock(mutex_);
    newest_ = std::move(state);
  }
  changed_.notify_all();
}

void NodeLink::flush(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, deadline.left(), [this] { return !newest_ && !busy_; });
}

void NodeLink::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || newest_; });
    if (ending_) return;
    NodeState state = std::move(*newest_);
    newest_.reset();
    busy_ = true;
    lock.unlock();
    bool answered = send(state);
    lock.lock();
    busy_ = false;
    if (!answered && !newest_) newest_ = std::move(state);  // a newer one counts more
    changed_.notify_all();
  }
}

bool NodeLink::send(const NodeState& state) {
  try {
    msg::Message reply = client_.call([&](flatbuffers::FlatBufferBuilder& builder) { return pack(builder, state); },
                                      Deadline::after_seconds(answer_seconds));
    if (const auto* orders = reply.as<fbs::NodeOrders>()) wished_(unpack(*orders));
    return true;
  } catch (const msg::Refusal& refusal) {
    refused_(static_cast<int>(refusal.code()), refusal.what());
    return true;
  } catch (const Error& error) {
    log::debug("{}", error.what());
    return false;
  }
}

}  // namespace ganymede::coordinator
