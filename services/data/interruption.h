#pragma once

namespace ganymede::data {

/// While it lives, SIGINT, SIGTERM and SIGHUP only set a mark, so that work under way can clean up; the second one
/// ends the process. One at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
};

/// Throws Error(can_go_on) once a signal came.
void stop_if_interrupted();

}  // namespace ganymede::data
