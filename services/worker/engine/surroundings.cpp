#include "services/worker/engine/surroundings.h"

#include <string>
#include <utility>

namespace ganymede::worker {
namespace {

thread_local std::int64_t own_wait_ns = 0;

/// Adds the time of a scope to a counter and to the thread's own.
class Stopwatch {
 public:
  explicit Stopwatch(std::atomic<std::int64_t>& sum) : sum_(sum), begin_(Clock::now()) {}
  ~Stopwatch() {
    std::int64_t span = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
    sum_ += span;
    own_wait_ns += span;
  }

 private:
  std::atomic<std::int64_t>& sum_;
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
  Stopwatch watch(waited_ns_[static_cast<std::size_t>(kind)]);
  auto give_up = [this] { return interrupted_.load(); };
  if (!context_.wait(word, ready, give_up, Deadline::after_seconds(timeout_), what)) {
    throw Interrupted(std::string("the wait for ") + what + " was ended");
  }
}

void Surroundings::wait(collectives::PendingPtr pending) {
  Stopwatch watch(waited_ns_[static_cast<std::size_t>(WaitKind::collectives)]);
  pending->wait(Deadline::after_seconds(timeout_));
}

double Surroundings::take_own_wait() { return static_cast<double>(std::exchange(own_wait_ns, 0)) / 1e6; }

std::array<double, wait_kinds> Surroundings::take_waits() {
  std::array<double, wait_kinds> waits{};
  for (int i = 0; i < wait_kinds; ++i) waits[i] = static_cast<double>(waited_ns_[i].exchange(0)) / 1e6;
  return waits;
}

}  // namespace ganymede::worker
