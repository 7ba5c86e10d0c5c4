#include "launcher/supervisor/vital_signs.h"

#include <algorithm>

namespace ganymede::launcher {

void hear(VitalSigns& signs, double now, std::uint64_t progress, bool waits_for_others) {
  signs.heard = now;
  if (progress != signs.progress || waits_for_others) signs.advanced = now;
  if (progress != signs.progress) signs.grown = now;
  signs.progress = progress;
}

void forgive(VitalSigns& signs, double gap) {
  signs.started += gap;
  signs.heard += gap;
  signs.advanced += gap;
  signs.grown += gap;
}

double stood_still(const VitalSigns& signs, double now) {
  return now - (signs.registered ? std::min(signs.heard, signs.advanced) : signs.started);
}

Verdict judge(const VitalSigns& signs, double now, const VitalLimits& limits) {
  if (!signs.registered) return now - signs.started > limits.start ? Verdict::never_came : Verdict::healthy;
  if (now - signs.heard > limits.silence) return Verdict::silent;
  if (now - signs.advanced > limits.standstill) return Verdict::stands_still;
  return Verdict::healthy;
}

}  // namespace ganymede::launcher
