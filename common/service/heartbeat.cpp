#include "common/service/heartbeat.h"

#include <pthread.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/base/log.h"

namespace ganymede::service {
namespace {

constexpr auto interval = std::chrono::milliseconds(200);
constexpr double answer_seconds = 1;
constexpr double register_seconds = 30;
constexpr double silence_seconds = 10;

static_assert(static_cast<int>(fbs::ServiceKind::worker) == static_cast<int>(Kind::worker));
static_assert(static_cast<int>(fbs::ServiceKind::checkpoint) == static_cast<int>(Kind::checkpoint));

fbs::ServiceKind wire_kind(Kind kind) { return static_cast<fbs::ServiceKind>(kind); }

void obey(RunningContext& context, const msg::Message& reply) {
  const auto* orders = reply.as<fbs::Orders>();
  if (orders == nullptr || !orders->finish() || context.finishing()) return;
  log::info("the launcher asks to finish");
  context.finish();
}

}  // namespace

void register_at_launcher(RunningContext& context) {
  auto fill = [&](flatbuffers::FlatBufferBuilder& builder) {
    return msg::Message::body(fbs::CreateRegister(builder, wire_kind(context.kind()), context.rank(), ::getpid()));
  };
  obey(context, context.launcher_client()->call(fill, Deadline::after_seconds(register_seconds)));
}

Heartbeat::Heartbeat(RunningContext& context)
    : context_(context), client_(context.launcher_client()), thread_([this] { beat(); }) {}

Heartbeat::~Heartbeat() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

/// False when the thread has to end.
bool Heartbeat::pause() {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, interval, [this] { return stopping_; });
}

void Heartbeat::beat() {
  ::pthread_setname_np(::pthread_self(), heartbeat_thread);
  auto fill = [&](flatbuffers::FlatBufferBuilder& builder) {
    auto detail = builder.CreateString(context_.detail());
    return msg::Message::body(
        fbs::CreateHeartbeat(builder, wire_kind(context_.kind()), context_.rank(), ::getpid(), context_.state(),
                             context_.words().progress.load(std::memory_order_acquire),
                             context_.control().block->decided_step.load(std::memory_order_acquire), detail));
  };
  Deadline silence = Deadline::after_seconds(silence_seconds);
  bool logged = false;
  do {
    try {
      obey(context_, client_->call(fill, Deadline::after_seconds(answer_seconds)));
      silence = Deadline::after_seconds(silence_seconds);
      if (logged) log::info("the launcher answers again");
      logged = false;
    } catch (const Error& error) {
      if (silence.passed() && !logged)
        log::warn("no heartbeat was answered for {} s: {}", silence_seconds, error.what());
      logged = logged || silence.passed();
    }
  } while (pause());
}

}  // namespace ganymede::service
