#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/collectives/collectives.h"
#include "common/plan/executor.h"
#include "common/service/service.h"

/// What the operations of a step see of the world outside: waits that end, and how long they took.
namespace ganymede::worker {

/// What a step waited for, in all lanes together.
enum class WaitKind : std::uint8_t { data, update, collectives };
constexpr int wait_kinds = 3;
const char* name(WaitKind kind);

class Surroundings {
 public:
  Surroundings(service::Context& context, double timeout_seconds) : context_(context), timeout_(timeout_seconds) {}

  /// Waits until `ready` holds for a word of the cell. Throws Interrupted when the attempt is over, Error at the
  /// deadline. Thread-safe.
  void wait(WaitKind kind, const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
            const char* what);
  /// The same, but false when `ready` does not hold after `seconds`: the caller looks around and waits again.
  bool wait_a_while(WaitKind kind, const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
                    double seconds, const char* what);
  /// Waits for a collective. Throws CollectiveError. Thread-safe.
  void wait(collectives::PendingPtr pending);

  /// From here on waits for words end (another lane failed, or a new generation began). Thread-safe.
  void interrupt() { interrupted_ = true; }
  bool interrupted() const { return interrupted_ || context_.finishing(); }

  /// Milliseconds since the last call, by WaitKind, of all threads.
  std::array<double, wait_kinds> take_waits();
  /// What the calling thread waited since the last call.
  static plan::OutsideWait take_own_wait();

  service::Context& context() { return context_; }

  /// `told(true)` is called in a thread that begins to wait here, `told(false)` when it has ended. Before any waits.
  void watch_waits(std::function<void(bool)> told) { told_ = std::move(told); }

 private:
  service::Context& context_;
  double timeout_;
  std::function<void(bool)> told_ = [](bool) {};
  std::atomic<bool> interrupted_{false};
  std::array<std::atomic<std::int64_t>, wait_kinds> waited_ns_{};
};

/// A wait ended because its attempt is over or the service must finish: nothing is wrong.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ganymede::worker
