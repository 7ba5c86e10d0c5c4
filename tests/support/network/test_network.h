#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/network/delayed_cable.h"

namespace ganymede::test {

/// Why no network of namespaces can be made here; empty when it can. A test skips with this text.
std::string network_obstacle();

/// Some machines in one: network namespaces, each with an interface eth0 (10.77.0.1, .2, …) on a common bridge, with
/// jumbo frames as in a cluster (headers of TCP are below 1% then). Gone after the test. Needs the right to make
/// namespaces (root).
class TestNetwork {
 public:
  /// Throws Error.
  explicit TestNetwork(int nodes);
  ~TestNetwork();
  TestNetwork(const TestNetwork&) = delete;
  TestNetwork& operator=(const TestNetwork&) = delete;

  std::string address(int node) const;
  /// What is put before a command so that it runs on this node.
  std::vector<std::string> inside(int node) const;

  /// Limits what the node sends, and what is sent to it, in megabytes a second each.
  void limit(int node, double megabytes_per_second);
  /// Delays what the node sends, by a DelayedCable. Once a node.
  void delay(int node, double milliseconds);
  /// Takes the node's cable out, or puts it back.
  void connect(int node, bool connected);

  /// What has gone through the node's interface so far, headers included.
  struct Bytes {
    std::uint64_t sent = 0, received = 0;
  };
  Bytes bytes(int node) const;

 private:
  std::string name(int node) const;
  void remove();

  int nodes_;
  std::string prefix_;  // of the namespaces' names; the bridge has one of its own
  std::vector<std::unique_ptr<DelayedCable>> cables_;
};

}  // namespace ganymede::test
