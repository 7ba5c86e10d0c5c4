#pragma once

#include <string>

#include "common/service/service.h"

namespace ganymede::test {

/// Process id of the service of `rank` in the run directory `run` (of its own node); 0: there is none now. Looks into
/// /proc.
int find_service(const std::string& run, service::Kind kind, int rank);

/// Whether every thread of the process stands still by SIGSTOP. False for one that is not there.
bool all_threads_stopped(int pid);

/// While it lives, this thread runs before all others on its core where that is allowed, so that it sees what lasts for
/// microseconds. What it starts meanwhile has the usual priority.
class Attention {
 public:
  Attention();
  ~Attention();
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
};

}  // namespace ganymede::test
