#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/network/nodes_run.h"

namespace ganymede::test {

/// How long and how hard a run is shaken.
struct SoakPlan {
  double seconds = 60;
  double pause = 5;  // seconds between two blows, on average
  std::uint32_t seed = 1;
  /// A process that is stopped is left to the launchers and keepers to find, in every second case; else it goes on by
  /// itself after one to three seconds.
  bool leave_stopped = false;
};

/// What the keepers of a run hold on to: what must not grow.
struct Holdings {
  std::size_t descriptors = 0, segments = 0;
  std::uint64_t segment_bytes = 0, resident_bytes = 0;
};

/// Random kills and stops of services and launchers of a run over several nodes, never of keepers: who loses one loses
/// the node.
class Soak {
 public:
  Soak(NodesRun& run, int nodes, const SoakPlan& plan);

  /// Throws Error when the run does not get on.
  void shake();
  /// Of all keepers. Waits until the run trains.
  Holdings holdings();
  /// Blows by what they hit ("SIGKILL worker").
  const std::map<std::string, int>& blows() const { return blows_; }

 private:
  struct Victim {
    std::string name;
    int pid = 0;
  };
  std::vector<Victim> victims();
  void blow(const Victim& victim);
  nlohmann::json status();

  NodesRun& run_;
  int nodes_;
  SoakPlan plan_;
  std::mt19937 random_;
  std::map<std::string, int> blows_;
};

}  // namespace ganymede::test
