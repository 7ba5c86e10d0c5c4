#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/collectives/world.h"

namespace ganymede::collectives {

/// A rendezvous between processes: one file a key in a folder.
class FolderStore : public Store {
 public:
  explicit FolderStore(std::string folder) : folder_(std::move(folder)) {}
  void set(const std::string& key, ConstBytes value) override;
  std::vector<std::byte> get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

 private:
  std::string path_of(const std::string& key) const;
  std::string folder_;
};

/// Ranks as processes of their own, on shared published memory. A rank's process ends with 0 when `body` returned, with
/// 1 after an exception. Whatever still runs is killed in the end.
class Processes {
 public:
  using RankBody = std::function<void(Member&)>;
  Processes(const Setting& setting, int ranks);
  ~Processes();
  void start(int rank, const RankBody& body);
  void kill(int rank);
  /// Exit code, or minus the signal; -1000 when it has not ended by the deadline.
  int ending(int rank, Deadline deadline);
  FolderStore store() const { return FolderStore(folder_); }

 private:
  Setting setting_;
  int ranks_;
  std::string folder_;
  std::shared_ptr<PublishedMemory> memory_;
  std::vector<pid_t> pids_;
};

}  // namespace ganymede::collectives
