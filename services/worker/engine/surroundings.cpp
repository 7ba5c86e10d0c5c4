#include "services/worker/engine/surroundings.h"

#include <string>
#include <utility>

namespace ganymede::worker {
namespace {

thread_local plan::OutsideWait own_wait;

/// Tells of the wait that a scope is, and adds its time to a counter and to the thread's own.
class Waiting {
 public:
  Waiting(const std::function<void(bool)>& told, std::atomic<std::int64_t>& sum, double& own_ms)
      : told_(told), sum_(sum), own_ms_(own_ms), begin_(Clock::now()) {
    told_(true);
  }
  ~Waiting() {
    told_(false);
    std::int64_t span = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
    sum_ += span;
    own_ms_ += static_cast<double>(span) / 1e6;
  }

 private:
  const std::function<void(bool)>& told_;
  std::atomic<std::int64_t>& sum_;
  double& own_ms_;
  Clock::time_point begin_;
};

}  // namespace

const char* name(WaitKind kind) {
  constexpr std::array<const char*, wait_kinds> names = {"data", "update", "collectives"};
  return names[static_cast<std::size_t>(kind)];
}

void Surroundings::wait(WaitKind kind, const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
                        const char* what) {
  if (ready(word.load(std::memory_order_acquire))) return;
  Waiting waiting(told_, waited_ns_[static_cast<std::size_t>(kind)], own_wait.words_ms);
  auto give_up = [this] { return interrupted_.load(); };
  if (!context_.wait(word, ready, give_up, Deadline::after_seconds(timeout_), what)) {
    throw Interrupted(std::string("the wait for ") + what + " was ended");
  }
}

bool Surroundings::wait_a_while(WaitKind kind, const step_protocol::Word& word,
                                const std::function<bool(std::uint64_t)>& ready, double seconds, const char* what) {
  if (ready(word.load(std::memory_order_acquire))) return true;
  Waiting waiting(told_, waited_ns_[static_cast<std::size_t>(kind)], own_wait.words_ms);
  Deadline pause = Deadline::after_seconds(seconds);
  auto give_up = [&] { return interrupted_.load() || pause.passed(); };
  if (context_.wait(word, ready, give_up, Deadline::after_seconds(seconds + timeout_), what)) return true;
  if (interrupted()) throw Interrupted(std::string("the wait for ") + what + " was ended");
  return false;
}

void Surroundings::wait(collectives::PendingPtr pending) {
  Waiting waiting(told_, waited_ns_[static_cast<std::size_t>(WaitKind::collectives)], own_wait.collectives_ms);
  pending->wait(Deadline::after_seconds(timeout_));
}

plan::OutsideWait Surroundings::take_own_wait() { return std::exchange(own_wait, plan::OutsideWait{}); }

std::array<double, wait_kinds> Surroundings::take_waits() {
  std::array<double, wait_kinds> waits{};
  for (int i = 0; i < wait_kinds; ++i) waits[i] = static_cast<double>(waited_ns_[i].exchange(0)) / 1e6;
  return waits;
}

}  // namespace ganymede::worker
