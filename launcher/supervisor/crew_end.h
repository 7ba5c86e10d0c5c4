#pragma once

#include <optional>
#include <string>

#include "launcher/supervisor/crew.h"

namespace ganymede::launcher {

/// The way of a crew to its end: asked through its heartbeats, or by SIGTERM, and pressed harder when it takes long.
class CrewEnd {
 public:
  explicit CrewEnd(Crew& crew) : crew_(crew) {}

  /// The work is done: services end when they are asked, those that have not after `patience` seconds are killed.
  void finish(double now, double patience);
  /// They end at once: by SIGTERM, or, `hard`, by SIGKILL. May come after `finish`, and again.
  void halt(double now, bool hard);
  /// Called several times a second afterwards. A sentence when there are processes that cannot be ended.
  std::optional<std::string> press_on(double now);

  bool halting() const { return halting_; }
  double began() const { return began_; }  // seconds

 private:
  Crew& crew_;
  bool halting_ = false, killed_ = false;
  double began_ = 0, patience_ = 0;
};

}  // namespace ganymede::launcher
