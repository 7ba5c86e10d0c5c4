#include "launcher/coordinator/checkpoint_parts.h"

#include "common/base/error.h"

namespace ganymede::coordinator {

CheckpointParts::Receipt CheckpointParts::report(std::uint64_t step, int rank, std::uint64_t bytes,
                                                 const std::string& hash) {
  if (rank < 0 || rank >= world_)
    fail("A checkpoint part of rank {} was reported, but the world has ranks 0 to {}.", rank, world_ - 1);
  sets_[step][rank] = Part{bytes, hash};
  while (sets_.size() > most_sets) sets_.erase(sets_.begin());
  Receipt receipt;
  auto set = sets_.find(step);
  if (set == sets_.end() || static_cast<int>(set->second.size()) != world_) return receipt;
  receipt.complete = true;
  for (const auto& [reporter, part] : set->second) {
    receipt.hashes.push_back(part.hash);
    receipt.bytes.push_back(part.bytes);
  }
  return receipt;
}

void CheckpointParts::committed(std::uint64_t step) { sets_.erase(sets_.begin(), sets_.lower_bound(step)); }

}  // namespace ganymede::coordinator
