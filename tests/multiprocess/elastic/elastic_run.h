#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <regex>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "tests/support/network/nodes_run.h"
#include "tests/support/process_wait.h"
#include "tests/support/undisturbed_run.h"

/// What the tests of worlds that form again have in common.
namespace ganymede::test {

inline std::vector<std::string> elastic_settings(std::vector<std::string> more) {
  auto all = UndisturbedRun::settings(300, 20);
  all.insert(all.end(), {"topology.ranks_per_node=1", "optimizer.decay_steps=300", "launch.node_timeout_seconds=5",
                         "checkpoint.keep_last=20"});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Of the checkpoint that the world formed again from.
inline std::uint64_t formed_again_from(const NodesRun& run) {
  std::smatch found;
  std::string output = run.output(0);
  if (!std::regex_search(output, found, std::regex("from the checkpoint of step ([0-9]+)")))
    ADD_FAILURE() << "the world did not form again:\n" << output;
  return found.empty() ? 0 : std::stoull(found[1]);
}

/// As when its machine loses power: the keeper and all that it holds.
inline void lose(NodesRun& run, int node) {
  auto launchers = run.first().status()["launchers"];
  for (const auto& launcher : launchers)
    if (launcher["node"] == node) ::kill(launcher["keeper_pid"].get<int>(), SIGKILL);
  run.wait_node(node);
}

/// Waits until node 0 has printed `text`.
inline void wait_for_text(const NodesRun& run, const std::string& text) {
  try {
    wait_until([&] { return run.output(0).find(text) != std::string::npos; }, 60, text);
  } catch (const Error& error) {
    fail("{}\nNode 0 printed:\n{}\nNode 1 printed:\n{}", error.what(), run.output(0), run.output(1));
  }
}

inline void expect_nothing_left(const NodesRun& run) {
  wait_until([&] { return run.first().leftovers().empty(); }, 20, "no process of any node is left");
}

}  // namespace ganymede::test
