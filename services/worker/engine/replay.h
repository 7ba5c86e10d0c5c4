#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/placement/placement.h"
#include "common/step_protocol/worker_machine.h"

/// Silent corruption (check.replay_every): the gradients of a step are computed twice from the same working copies and
/// batch. Computation gives the same bits, so a rank whose bits differ has memory or a device that errs.
namespace ganymede::worker {

/// Of one pass of a step, by bucket. The three are written by one lane each.
struct PassHashes {
  std::vector<std::uint64_t> parameters;  // of its working copy, as this rank sends it
  std::vector<std::uint64_t> gradients;   // of its rows, before other ranks' are added
  std::vector<std::uint64_t> sums;        // that this rank holds: what the optimizer server would read

  bool wanted() const { return !sums.empty(); }
  /// From here on they are, all empty.
  void want(std::size_t buckets);
};

/// Continues the hash of a bucket with more bytes.
void add(std::vector<std::uint64_t>& hashes, int bucket, std::span<const std::byte> bytes);

enum class Differing : std::uint8_t { nothing, sums, gradients, parameters };  // the larger, the nearer to the cause

struct Difference {
  Differing what = Differing::nothing;
  int bucket = 0;
};

/// What of a rank differs between two passes: the nearest to the cause, in the bucket that was computed first.
Difference difference(const PassHashes& first, const PassHashes& second);

/// As Vote::replay_difference.
std::uint64_t word_of(Difference difference);
Difference difference_of(std::uint64_t word);

/// Fixed, so that ranks can gather it.
struct HostName {
  char text[64] = {};
};
HostName this_host();

/// The sentences that a run ends with because the ranks voted that these passes differ; `hosts` by rank.
std::string describe_differences(std::span<const step_protocol::Vote> votes, std::span<const HostName> hosts,
                                 const placement::Placement& placement);

}  // namespace ganymede::worker
