#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/collectives/collectives.h"

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

/// A backend under test: its name and how one member of a group is made.
struct Backend {
  std::string name;
  int largest = 8;  // ranks
  std::function<std::unique_ptr<Communicator>(const Group&, std::shared_ptr<Store>)> make;
};
std::vector<Backend> backends();

/// Runs `body` once per rank, each in a thread with a communicator of one group "world"; the first exception of any
/// rank is thrown again.
void run_world(const Backend& backend, int ranks, const std::function<void(Communicator&)>& body);

inline Deadline soon() { return Deadline::after_seconds(20); }

/// Byte `index` of the message that `from` sends to `to` in a round.
inline std::byte pattern(int from, int to, std::size_t index, int round = 0) {
  return static_cast<std::byte>(from * 31 + to * 17 + index * 7 + round * 3);
}

}  // namespace ganymede::collectives
