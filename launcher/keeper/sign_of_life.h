#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/os/fd.h"

/// How a keeper knows that its launcher lives: the launcher inherits a counter (an eventfd) and adds to it several
/// times a second. Neither ever waits for the other, so one that somebody stops does not hold up the other.
namespace ganymede::keeper {

/// The keeper's side. All times are seconds of the monotonic clock.
class LauncherLife {
 public:
  /// Throws Error when the counter cannot be made.
  LauncherLife();
  /// The environment's variable that tells a launcher of the counter.
  std::pair<std::string, std::string> environment() const;

  struct Fault {
    double since = 0;  // seconds
    std::string why;   // "it was stopped by a signal for 5.0 s"
  };
  /// Another launcher was started.
  void begin();
  /// Called several times a second. Why the launcher has to be replaced; nothing while it lives, in a debugger as well.
  /// A launcher that has not given a sign yet (it packs a dataset) may take as long as it wants.
  std::optional<Fault> look(int pid, double now);

 private:
  void listen(double now);

  os::Fd counter_;
  double looked_ = 0;
  std::optional<double> stopped_since_, heard_;
};

/// The launcher's side. Does nothing in a process that no keeper started. The first one of a process takes the counter
/// over, and closes it with its own end: a launcher has one for its life, made before its threads.
class SignOfLife {
 public:
  SignOfLife();
  void give() const { add(1); }
  /// The last one: what comes now may take as long as it wants.
  void end() const;

 private:
  void add(std::uint64_t count) const;

  os::Fd counter_;
};

}  // namespace ganymede::keeper
