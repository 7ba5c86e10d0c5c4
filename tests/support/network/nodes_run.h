#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/network/test_network.h"
#include "tests/support/training_run.h"

namespace ganymede::test {

/// A run over several nodes that share one file system: a `ganymede train … --nodes … --node I` for each. On a
/// TestNetwork every one lives in a namespace of its own; without one they are told apart by loopback addresses.
class NodesRun {
 public:
  /// `network` must outlive it. Settings and programs as those of a TrainingRun.
  NodesRun(int nodes, std::vector<std::string> settings, TestNetwork* network = nullptr, std::string programs = "");
  ~NodesRun();
  NodesRun(const NodesRun&) = delete;
  NodesRun& operator=(const NodesRun&) = delete;

  /// Starts all nodes, the last one first: the order does not matter.
  void start(const std::vector<std::string>& arguments = {});
  /// Starts one; a node other than 0 may have arguments that the others have not.
  void start_node(int node, const std::vector<std::string>& arguments = {});
  /// Waits for the end of a node and returns its exit code.
  int wait_node(int node, double seconds = 120);
  /// The exit codes of all nodes.
  std::vector<int> wait(double seconds = 120);
  void signal(int node, int number);
  std::string output(int node) const;

  /// All addresses, as --nodes takes them.
  std::string addresses() const;
  std::string nodes_option;  // given as --nodes; standard: addresses()
  /// Node 0, which has metrics, checkpoints and `ctl`.
  TrainingRun& first() { return first_; }
  const TrainingRun& first() const { return first_; }
  /// The run directory of a node.
  std::string folder(int node) const;
  std::string output_file(int node) const;  // of a node other than 0
  /// Kills all nodes' keepers, and with them everything.
  void kill_everything();

 private:
  int nodes_;
  TestNetwork* network_;
  int port_;
  TrainingRun first_;
  std::vector<std::optional<os::Child>> others_;  // from node 1 on
};

/// A TCP port of the loopback that nobody uses now.
int free_port();

}  // namespace ganymede::test
