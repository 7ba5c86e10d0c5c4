#pragma once

#include <condition_variable>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "common/collectives/factory/factory.h"
#include "tests/conformance/collectives/published_memory.h"

namespace ganymede::collectives {

/// A rendezvous inside one process.
class MemoryStore : public Store {
 public:
  void set(const std::string& key, ConstBytes value) override;
  std::vector<std::byte> get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::byte>> values_;
  std::map<std::string, std::int64_t> counters_;
};

/// How communicators are made in a test, and whether their buffers lie in published memory.
struct Setting {
  std::string name;
  std::vector<int> worlds;  // numbers of ranks
  Backend backend = Backend::automatic;
  int ranks_per_node = 0;
  bool port = true;       // memory is published at all
  bool published = true;  // and the buffers lie in it
  bool plain = false;     // gloo's own communicator, without the factory
  std::vector<int> nodes(int ranks) const;
};
std::vector<Setting> settings();
/// Those that connect several ranks.
std::vector<Setting> connected();
inline void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

/// One rank of a test.
class Member {
 public:
  Member(const Setting& setting, int rank, int ranks, std::shared_ptr<Store> store,
         std::shared_ptr<PublishedMemory> memory);
  /// A communicator of all ranks. Throws CollectiveError.
  std::unique_ptr<Communicator> form(const std::string& name, double timeout_seconds = 20);

  /// Zeroed memory that lives as long as this; alternately in one and the other region, if the setting says so.
  template <class T>
  std::span<T> memory(std::size_t count) {
    return {reinterpret_cast<T*>(allocate(count * sizeof(T))), count};
  }
  /// Forgets what was allocated.
  void reuse_memory() { used_[0] = used_[1] = 0; }

  Store& store() { return *store_; }
  int rank() const { return rank_; }
  int size() const { return ranks_; }

 private:
  std::byte* allocate(std::size_t bytes);

  const Setting& setting_;
  int rank_, ranks_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<PublishedMemory> memory_;
  std::unique_ptr<Port> port_;
  std::size_t used_[2] = {0, 0};
  int next_region_ = 0;
  std::list<std::vector<std::byte>> heap_;
};

using Body = std::function<void(Member&, Communicator& world)>;
/// Runs `body` once per rank, each in a thread with a communicator of one group "world"; the first exception of any
/// rank is thrown again.
void run_world(const Setting& setting, int ranks, const Body& body);
/// For every number of ranks of the setting.
void run_worlds(const Setting& setting, const Body& body);

inline Deadline soon() { return Deadline::after_seconds(20); }

/// Byte `index` of the message that `from` sends to `to` in a round.
inline std::byte pattern(int from, int to, std::size_t index, int round = 0) {
  return static_cast<std::byte>(from * 31 + to * 17 + index * 7 + (index >> 8) * 5 + round * 3);
}

/// Boundaries of parts with these sizes.
std::vector<std::size_t> boundaries(const std::vector<std::size_t>& sizes);

}  // namespace ganymede::collectives
