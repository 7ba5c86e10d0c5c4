#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "common/base/error.h"
#include "tests/support/kills/soak.h"
#include "tests/support/undisturbed_run.h"

namespace ganymede::test {

/// Names of UNIX sockets and memfds of the run in `folder` that some process of this machine still has.
inline std::vector<std::string> held_names(const std::string& folder) {
  std::vector<std::string> names;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (line.find(folder) != std::string::npos) names.push_back(line);
  return names;
}

/// Four ranks on two nodes are shaken, then stopped: losses and state are those of a run that nobody disturbed, and
/// nothing is left or has grown. Nodes are network namespaces where those are allowed, else loopback addresses.
inline void expect_to_outlast(const SoakPlan& plan) {
  auto settings = UndisturbedRun::settings(100'000, 20);
  for (const char* more : {"parallel.ranks=4", "topology.ranks_per_node=2", "validation.every_steps=0",
                           "launch.restart_budget=100000", "launch.restart_window_seconds=1"})
    settings.emplace_back(more);
  auto network = network_obstacle().empty() ? std::make_unique<TestNetwork>(2) : nullptr;
  NodesRun run(2, settings, network.get());
  run.start();
  run.first().wait_for_step(3, 200);
  Soak soak(run, 2, plan);
  Holdings before = soak.holdings();
  soak.shake();
  Holdings after = soak.holdings();
  EXPECT_LE(after.descriptors, before.descriptors + 8);
  EXPECT_LE(after.resident_bytes, before.resident_bytes + (8u << 20));
  EXPECT_EQ(after.segments, before.segments);
  EXPECT_EQ(after.segment_bytes, before.segment_bytes);
  EXPECT_EQ(run.first().ganymede({"ctl", run.folder(0), "stop"}).exit_code, 0);
  std::vector<int> codes = run.wait(200);
  EXPECT_EQ(codes, (std::vector<int>{75, 75})) << run.output(0) << run.output(1);
  EXPECT_TRUE(run.first().leftovers().empty());
  EXPECT_EQ(held_names(run.folder(0)), std::vector<std::string>());
  for (const auto& [what, count] : soak.blows()) std::printf("%4d  %s\n", count, what.c_str());
  std::printf("%llu steps\n", static_cast<unsigned long long>(run.first().last_step()));
  // Resident memory of all processes and segments of node 0.
  auto lines = run.first().metrics();
  double first = lines.front()["memory"]["host_used"], last = first;
  for (const auto& line : lines) last = line.contains("memory") ? line["memory"]["host_used"].get<double>() : last;
  EXPECT_LT(last, 1.1 * first + (32 << 20));
  settings.push_back(fmt::format("run.steps={}", run.first().last_step()));
  UndisturbedRun undisturbed(settings);
  undisturbed.seconds = 90 + plan.seconds;
  undisturbed.expect_same(run.first());
}

}  // namespace ganymede::test
