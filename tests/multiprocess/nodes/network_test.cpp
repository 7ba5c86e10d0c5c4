#include <gtest/gtest.h>

#include "common/base/deadline.h"
#include "tests/support/network/test_network.h"
#include "tests/support/process_wait.h"

/// The network that tests of several nodes rely on.
namespace ganymede::test {
namespace {

constexpr double megabyte = 1e6;

/// Sends `bytes` from node 1 to node 0 and returns how long that took, in seconds.
double send(const TestNetwork& network, int bytes) {
  auto in = [&](int node, const std::string& program) {
    auto command = network.inside(node);
    command.insert(command.end(), {"python3", "-c", program});
    return command;
  };
  os::Command receiver;
  receiver.arguments = in(0,
                          "import socket\n"
                          "s = socket.create_server(('10.77.0.1', 5000))\n"
                          "c = s.accept()[0]\n"
                          "while c.recv(1 << 16): pass\n"
                          "c.sendall(b'.')\n");
  os::Child child = os::spawn(receiver);
  auto sent = run_program(in(1,
                             "import socket, time\n"
                             "end = time.monotonic() + 20\n"
                             "while True:\n"
                             "  try: c = socket.create_connection(('10.77.0.1', 5000)); break\n"
                             "  except OSError:\n"
                             "    if time.monotonic() > end: raise\n"
                             "    time.sleep(0.05)\n"
                             "began = time.monotonic()\n"
                             "c.sendall(bytes(" +
                                 std::to_string(bytes) +
                                 "))\n"
                                 "c.shutdown(socket.SHUT_WR)\n"
                                 "c.recv(1)\n"
                                 "print(time.monotonic() - began)\n"),
                          60);
  EXPECT_EQ(sent.exit_code, 0) << sent.output;
  EXPECT_EQ(wait_for_end(child, 20).exit_code, 0);
  return std::stod(sent.output);
}

void expect_limits(TestNetwork& network) {
  network.limit(1, 2);
  EXPECT_GT(send(network, static_cast<int>(4 * megabyte)), 1.5) << "no faster than 2 MB/s";
}

TEST(TestNetwork, CountsWhatGoesThroughACableAndLimitsIt) {
  if (std::string obstacle = network_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  TestNetwork network(2);
  auto before = network.bytes(1).sent;
  send(network, static_cast<int>(4 * megabyte));
  double sent = static_cast<double>(network.bytes(1).sent - before);
  EXPECT_GT(sent, 4 * megabyte);
  EXPECT_LT(sent, 4.2 * megabyte) << "headers are a few percent";
  expect_limits(network);
}

TEST(TestNetwork, DelaysWhatANodeSends) {
  if (std::string obstacle = network_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  TestNetwork network(2);
  EXPECT_LT(send(network, 1), 0.2);
  network.delay(1, 200);
  EXPECT_GT(send(network, 1), 0.2);
}

/// Nothing is lost on a cable with a delay, and its speed can be limited as well.
TEST(TestNetwork, DelaysMegabytesWhole) {
  if (std::string obstacle = network_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  TestNetwork network(2);
  network.delay(1, 2);
  auto before = network.bytes(0).received;
  send(network, static_cast<int>(50 * megabyte));
  double received = static_cast<double>(network.bytes(0).received - before);
  EXPECT_GT(received, 50 * megabyte);
  EXPECT_LT(received, 51.5 * megabyte) << "sent again";
  expect_limits(network);
}

}  // namespace
}  // namespace ganymede::test
