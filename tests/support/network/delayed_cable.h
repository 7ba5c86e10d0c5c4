#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "common/os/fd.h"

namespace ganymede::test {

/// Carries frames between two interfaces of a network namespace, and keeps those of the first one for some time. What
/// `tc … netem delay` does, on every kernel: few of those that containers and virtual machines run on have netem. A
/// thread of its own until the object goes.
class DelayedCable {
 public:
  /// `space`: the namespace's name. Frames that come in at `first` leave at `second` that much later, the others at
  /// once. Throws Error.
  DelayedCable(const std::string& space, const std::string& first, const std::string& second, double milliseconds);
  ~DelayedCable();
  DelayedCable(const DelayedCable&) = delete;
  DelayedCable& operator=(const DelayedCable&) = delete;

 private:
  void carry(double seconds);

  os::Fd first_, second_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace ganymede::test
