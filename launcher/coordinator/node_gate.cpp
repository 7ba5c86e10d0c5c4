#include "launcher/coordinator/node_gate.h"

#include <chrono>
#include <thread>

#include "common/base/error.h"
#include "launcher/coordinator/network_path.h"
#include "launcher/coordinator/node_messages.h"

namespace ganymede::coordinator {
namespace {

constexpr auto farewell = std::chrono::seconds(2);

}  // namespace

NodeGate::NodeGate(const NodeAddress& address, const std::string& secret_key, int nodes) : nodes_(nodes) {
  auto handler = [this](const std::string& identity, const msg::Message& request) { return answer(identity, request); };
  try {
    server_ = std::make_unique<msg::Server>(listening_endpoint(address), handler,
                                            msg::ServerOptions{.secret_key = secret_key, .relay = {}});
  } catch (const Error& error) {
    fail(
        "{} It is node 0's address in --nodes: another run may use the port; give an address of this machine with a "
        "port that is free.",
        error.what());
  }
}

void NodeGate::open(msg::Server::Handler handler) {
  std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

void NodeGate::end(int exit_code, const std::string& text) {
  open([exit_code, text](const std::string&, const msg::Message& request) {
    return msg::refused(request, exit_code, text);
  });
}

void NodeGate::linger() {
  bool known = false;
  {
    std::lock_guard lock(mutex_);
    known = known_;
  }
  if (known) std::this_thread::sleep_for(farewell);
}

msg::Message NodeGate::answer(const std::string& identity, const msg::Message& request) {
  std::lock_guard lock(mutex_);  // so that a handler that was replaced does not run any more
  known_ = true;
  if (handler_) return handler_(identity, request);
  const auto* hello = request.as<fbs::NodeHello>();
  if (!hello) throw msg::NoAnswer();
  if (hello->nodes() != nodes_)
    fail_usage("Node {} was started with {} nodes and node 0 with {}: --nodes has to be the same on all.",
               hello->node(), hello->nodes(), nodes_);
  return not_ready(request, "node 0 makes its run directory ready");
}

}  // namespace ganymede::coordinator
