#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "common/collectives/collectives.h"

namespace ganymede::collectives {

/// The byte counters of one communicator. Thread-safe.
class TrafficCounter {
 public:
  void add(const std::string& operation, const Cargo& cargo, std::uint64_t inside_node, std::uint64_t between_nodes);
  std::vector<Traffic> all() const;

 private:
  struct Sums {
    std::uint64_t inside = 0, between = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, std::string>, Sums> sums_;  // by operation, bucket, wire
};

}  // namespace ganymede::collectives
