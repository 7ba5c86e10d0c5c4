#pragma once

#include <optional>
#include <string>

namespace ganymede::cli {

/// `ganymede ctl RUN restart SERVICE [--rank R] [--binary PATH] [--wait SECONDS]`.
struct RestartWish {
  std::string run, service;
  std::optional<int> rank;            // nothing: all, one after another
  std::optional<std::string> binary;  // the program that it runs from now on, or "default", the installed one
  double seconds = 600;               // to wait for each until the run trains with it; 0: order it alone
};

/// Kills a service and waits until its replacement works and the run trains. Throws Error when no job runs there, for a
/// binary that cannot work in it, and when the replacement does not come or its binary was given up; ranks after it are
/// left alone then.
void restart(const RestartWish& wish);

}  // namespace ganymede::cli
