#include "tests/support/network/test_network.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "common/base/error.h"
#include "tests/support/process_wait.h"

namespace ganymede::test {
namespace {

Finished run(const std::string& command) {
  std::vector<std::string> words = {"/usr/bin/env"};
  std::istringstream text(command);
  for (std::string word; text >> word;) words.push_back(word);
  return run_program(words, 20);
}

void must(const std::string& command) {
  auto finished = run(command);
  if (finished.exit_code != 0) fail("{}: {}", command, finished.output);
}

std::string bridge(const std::string& prefix) { return prefix + "b"; }

}  // namespace

std::string network_obstacle() {
  static const std::string obstacle = [] {
    if (run("ip -V").exit_code != 0) return std::string("there is no `ip` here: install iproute2");
    std::string name = fmt::format("gmtry{}", getpid());
    auto made = run("ip netns add " + name);
    auto entered = made.exit_code == 0 ? run("ip netns exec " + name + " true") : made;
    auto paired =
        entered.exit_code == 0 ? run("ip -n " + name + " link add name left type veth peer name right") : entered;
    run("ip netns del " + name);
    return paired.exit_code == 0 ? std::string() : "network namespaces are not allowed here: " + paired.output;
  }();
  return obstacle;
}

TestNetwork::TestNetwork(int nodes) : nodes_(nodes) {
  static int number = 0;
  prefix_ = fmt::format("gm{}x{}", getpid(), number++);
  try {
    must("ip netns add " + bridge(prefix_));
    std::string at_bridge = "ip -n " + bridge(prefix_) + " ";
    must(at_bridge + "link add name bridge0 type bridge");
    must(at_bridge + "link set bridge0 up");
    for (int node = 0; node < nodes; ++node) {
      std::string port = fmt::format("port{}", node), at_node = "ip -n " + name(node) + " ";
      must("ip netns add " + name(node));
      must(at_bridge + "link add name " + port + " type veth peer name eth0 netns " + name(node));
      must(at_bridge + "link set " + port + " master bridge0 mtu 9000 up");
      must(at_node + "address add " + address(node) + "/24 dev eth0");
      must(at_node + "link set eth0 mtu 9000 up");
      must(at_node + "link set lo up");
    }
  } catch (...) {
    remove();
    throw;
  }
}

TestNetwork::~TestNetwork() { remove(); }

void TestNetwork::remove() {
  cables_.clear();
  for (int node = 0; node < nodes_; ++node) run("ip netns del " + name(node));
  run("ip netns del " + bridge(prefix_));
}

std::string TestNetwork::name(int node) const { return fmt::format("{}n{}", prefix_, node); }

std::string TestNetwork::address(int node) const { return fmt::format("10.77.0.{}", node + 1); }

std::vector<std::string> TestNetwork::inside(int node) const {
  return {"/usr/bin/env", "ip", "netns", "exec", name(node)};
}

void TestNetwork::limit(int node, double megabytes_per_second) {
  std::string shape = fmt::format("root tbf rate {:.0f}kbit burst 256kb latency 100ms", megabytes_per_second * 8000);
  must(fmt::format("ip netns exec {} tc qdisc replace dev eth0 {}", name(node), shape));
  must(fmt::format("ip netns exec {} tc qdisc replace dev port{} {}", bridge(prefix_), node, shape));
}

/// The node's port leaves the bridge; a pair of interfaces and the cable lie between them.
void TestNetwork::delay(int node, double milliseconds) {
  std::string at_bridge = "ip -n " + bridge(prefix_) + " ", port = fmt::format("port{}", node);
  std::string cable = fmt::format("cable{}", node), plug = fmt::format("plug{}", node);
  must(at_bridge + "link set " + port + " nomaster");
  must(at_bridge + "link add name " + cable + " mtu 9000 type veth peer name " + plug + " mtu 9000");
  must(at_bridge + "link set " + plug + " master bridge0 up");
  must(at_bridge + "link set " + cable + " up");
  cables_.push_back(std::make_unique<DelayedCable>(bridge(prefix_), port, cable, milliseconds));
}

void TestNetwork::connect(int node, bool connected) {
  must(fmt::format("ip -n {} link set port{} {}", bridge(prefix_), node, connected ? "up" : "down"));
}

TestNetwork::Bytes TestNetwork::bytes(int node) const {
  auto finished = run("ip -n " + name(node) + " -s -j link show eth0");
  if (finished.exit_code != 0) fail("The counters of node {} cannot be read: {}", node, finished.output);
  auto counters = nlohmann::json::parse(finished.output).at(0).at("stats64");
  return {counters.at("tx").at("bytes").get<std::uint64_t>(), counters.at("rx").at("bytes").get<std::uint64_t>()};
}

}  // namespace ganymede::test
