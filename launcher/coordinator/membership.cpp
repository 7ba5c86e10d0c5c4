#include "launcher/coordinator/membership.h"

namespace ganymede::coordinator {

std::optional<std::uint64_t> Membership::begin() {
  if (begun_ || !complete()) return std::nullopt;
  begun_ = true;
  return ++generation_;
}

std::optional<std::uint64_t> Membership::worker_died(int rank) {
  present_.erase(rank);
  if (!begun_) return std::nullopt;
  return ++generation_;
}

std::optional<std::uint64_t> Membership::failed(std::uint64_t decided, bool counts) {
  if (failures_ > 0 && decided != decided_at_failure_) failures_ = 0;
  if (counts) ++failures_;
  decided_at_failure_ = decided;
  if (failures_ >= most_failures) return std::nullopt;
  return ++generation_;
}

}  // namespace ganymede::coordinator
