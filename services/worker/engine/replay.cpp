#include "services/worker/engine/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/os/machine.h"

namespace ganymede::worker {
namespace {

/// The last bucket that differs: backward goes from head to embedding. -1: none.
int last_difference(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second) {
  for (std::size_t i = first.size(); i-- > 0;)
    if (first[i] != second[i]) return static_cast<int>(i);
  return -1;
}

const char* words(Differing what) {
  switch (what) {
    case Differing::nothing:
      return "nothing";
    case Differing::sums:
      return "the sums that it made of what came from the ranks";
    case Differing::gradients:
      return "the gradients of its own rows";
    case Differing::parameters:
      return "the working copy in its memory";
  }
  return "what this program does not know";
}

}  // namespace

void PassHashes::want(std::size_t buckets) {
  for (auto* hashes : {&parameters, &gradients, &sums}) hashes->assign(buckets, 0);
}

void add(std::vector<std::uint64_t>& hashes, int bucket, std::span<const std::byte> bytes) {
  std::uint64_t& hash = hashes[static_cast<std::size_t>(bucket)];
  hash = hash64(bytes, hash);
}

Difference difference(const PassHashes& first, const PassHashes& second) {
  if (int bucket = last_difference(first.parameters, second.parameters); bucket >= 0)
    return {Differing::parameters, bucket};
  if (int bucket = last_difference(first.gradients, second.gradients); bucket >= 0)
    return {Differing::gradients, bucket};
  if (int bucket = last_difference(first.sums, second.sums); bucket >= 0) return {Differing::sums, bucket};
  return {};
}

std::uint64_t word_of(Difference difference) {
  return static_cast<std::uint64_t>(difference.bucket) << 8 | static_cast<std::uint64_t>(difference.what);
}

Difference difference_of(std::uint64_t word) {
  return {static_cast<Differing>(word & 0xff), static_cast<int>(word >> 8)};
}

HostName this_host() {
  HostName host;
  os::host_name().copy(host.text, sizeof(host.text) - 1);
  return host;
}

std::string describe_differences(std::span<const step_protocol::Vote> votes, std::span<const HostName> hosts,
                                 const placement::Placement& placement) {
  Differing nearest = Differing::nothing;
  for (const auto& vote : votes) nearest = std::max(nearest, difference_of(vote.replay_difference).what);
  std::string ranks;
  for (std::size_t rank = 0; rank < votes.size(); ++rank) {
    Difference found = difference_of(votes[rank].replay_difference);
    if (found.what != nearest) continue;  // of others what they got from these differs
    ranks += fmt::format("{}rank {} on {}, {} (bucket {})", ranks.empty() ? "" : "; ", rank, hosts[rank].text,
                         words(found.what), placement.buckets.at(static_cast<std::size_t>(found.bucket)).name);
  }
  std::uint64_t step = votes.front().step;
  return fmt::format(
      "Step {} was computed twice (check.replay_every) and came out differently: {}. Nothing of it was applied. Memory "
      "or device there give wrong results without a word: take that machine out, then the same command goes on from "
      "the last checkpoint.",
      step, ranks);
}

}  // namespace ganymede::worker
