#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/collectives/shm/regions.h"
#include "common/shm/keeper_client.h"

namespace ganymede::collectives {

/// Regions that are segments held by the node's keeper: region i of a rank is "rank.<rank>/<segments[i]>", all of it,
/// head included. Mapped on first use, to be read only. Segments of another job are refused. One for a generation:
/// after a recovery from a checkpoint the segments are other ones. Thread-safe.
class KeeperMemory : public PeerMemory {
 public:
  KeeperMemory(shm::KeeperClient keeper, std::vector<std::string> segments, std::uint64_t job);
  ~KeeperMemory() override;
  KeeperMemory(const KeeperMemory&) = delete;
  KeeperMemory& operator=(const KeeperMemory&) = delete;
  std::span<const std::byte> map(int rank, std::size_t region) override;

 private:
  shm::KeeperClient keeper_;
  std::vector<std::string> segments_;
  std::uint64_t job_;
  std::mutex mutex_;
  std::map<std::pair<int, std::size_t>, std::span<const std::byte>> mapped_;
};

}  // namespace ganymede::collectives
