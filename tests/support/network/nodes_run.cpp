#include "tests/support/network/nodes_run.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

#include "common/base/error.h"
#include "common/os/fd.h"
#include "common/os/files.h"
#include "tests/support/process_wait.h"

namespace ganymede::test {
namespace {

constexpr int network_port = 4700;  // in a namespace every port is free

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

int free_port() {
  os::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* at = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), at, size) != 0 || ::getsockname(socket.get(), at, &size) != 0) fail("No port is free.");
  return ntohs(address.sin_port);
}

NodesRun::NodesRun(int nodes, std::vector<std::string> settings, TestNetwork* network, std::string programs)
    : nodes_(nodes),
      network_(network),
      port_(network ? network_port : free_port()),
      first_(std::move(settings), std::move(programs)),
      others_(static_cast<std::size_t>(nodes - 1)) {}

NodesRun::~NodesRun() {
  try {
    kill_everything();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

std::string NodesRun::addresses() const {
  std::string text;
  for (int node = 0; node < nodes_; ++node) {
    std::string host = network_ ? network_->address(node) : fmt::format("127.0.0.{}", node + 1);
    text += fmt::format("{}{}{}", node == 0 ? "" : ",", host, node == 0 ? fmt::format(":{}", port_) : "");
  }
  return text;
}

std::string NodesRun::folder(int node) const {
  return node == 0 ? first_.folder() : fmt::format("{}/node.{}", first_.folder(), node);
}

std::string NodesRun::output_file(int node) const { return fmt::format("{}.output.{}", first_.folder(), node); }

void NodesRun::start(const std::vector<std::string>& arguments) {
  for (int node = nodes_ - 1; node >= 0; --node) start_node(node, arguments);
}

void NodesRun::start_node(int node, const std::vector<std::string>& arguments) {
  first_.prefix = network_ ? network_->inside(node) : std::vector<std::string>{};
  auto all =
      with({"--nodes", nodes_option.empty() ? addresses() : nodes_option, "--node", std::to_string(node)}, arguments);
  if (node == 0) return first_.start(all);
  os::Command command = first_.command(all);
  command.output_file = output_file(node);
  others_[static_cast<std::size_t>(node - 1)] = os::spawn(command);
}

int NodesRun::wait_node(int node, double seconds) {
  if (node == 0) return first_.wait(seconds);
  auto& child = others_[static_cast<std::size_t>(node - 1)];
  if (!child) fail("Node {} was not started.", node);
  os::Child ending = std::move(*child);
  child.reset();
  try {
    return wait_for_end(ending, seconds).exit_code;
  } catch (const Error& error) {
    fail("{}\nNode {} printed:\n{}\nNode 0 printed:\n{}", error.what(), node, output(node), output(0));
  }
}

std::vector<int> NodesRun::wait(double seconds) {
  std::vector<int> codes;
  for (int node = 0; node < nodes_; ++node) codes.push_back(wait_node(node, seconds));
  return codes;
}

void NodesRun::signal(int node, int number) {
  if (node == 0) return first_.signal(number);
  os::send_signal(*others_[static_cast<std::size_t>(node - 1)], number);
}

std::string NodesRun::output(int node) const { return node == 0 ? first_.output() : os::read_file(output_file(node)); }

void NodesRun::kill_everything() {
  for (auto& child : others_) {
    if (!child) continue;
    os::send_signal(*child, SIGKILL);
    wait_for_end(*child, 20);
    child.reset();
  }
  first_.kill_everything();
}

}  // namespace ganymede::test
