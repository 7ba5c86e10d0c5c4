#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ganymede::coordinator {

/// Collects the durable parts of checkpoints until every rank of the world has reported. Not thread-safe.
class CheckpointParts {
 public:
  struct Receipt {
    bool complete = false;
    std::vector<std::string> hashes;   // in rank order, when complete
    std::vector<std::uint64_t> bytes;  // in rank order, when complete
  };

  explicit CheckpointParts(int world) : world_(world) {}

  /// Notes a part (again, if it was reported before: the newest report counts) and says whether the set is complete.
  /// Throws Error for a rank outside the world.
  Receipt report(std::uint64_t step, int rank, std::uint64_t bytes, const std::string& hash);

  /// The checkpoint of `step` is committed: older sets are forgotten. Its own stays, for a request that is repeated.
  void committed(std::uint64_t step);

  static constexpr std::size_t most_sets = 4;  // of steps that are collected at once; the oldest goes first

 private:
  struct Part {
    std::uint64_t bytes = 0;
    std::string hash;
  };
  int world_;
  std::map<std::uint64_t, std::map<int, Part>> sets_;
};

}  // namespace ganymede::coordinator
