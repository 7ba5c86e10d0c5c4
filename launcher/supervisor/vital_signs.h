#pragma once

#include <cstdint>

namespace ganymede::launcher {

/// What is known of a service's life; all times in seconds of one monotonic clock.
struct VitalSigns {
  double started = 0;
  bool registered = false;
  double heard = 0;     // last heartbeat (or registration)
  double advanced = 0;  // when `progress` last grew, or the service last said that it waits for others
  double grown = 0;     // when `progress` last grew
  std::uint64_t progress = 0;
};

/// Takes in one heartbeat.
void hear(VitalSigns& signs, double now, std::uint64_t progress, bool waits_for_others);

/// The watcher itself was away for `gap` seconds (stopped, machine asleep): nobody is blamed for that time.
void forgive(VitalSigns& signs, double gap);

struct VitalLimits {
  double start = 60;        // seconds until a service must have registered
  double silence = 30;      // … between heartbeats
  double standstill = 120;  // … without progress while it does not wait for others
};

enum class Verdict { healthy, never_came, silent, stands_still };

/// Seconds since its last sign of life or progress, of one that is not healthy.
double stood_still(const VitalSigns& signs, double now);

Verdict judge(const VitalSigns& signs, double now, const VitalLimits& limits);

}  // namespace ganymede::launcher
