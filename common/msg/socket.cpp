#include "common/msg/socket.h"

#include <sys/un.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/msg/curve.h"
#include "common/msg/message.h"

namespace ganymede::msg {

zmq::context_t& context() {
  static auto* shared = new zmq::context_t(1);
  return *shared;
}

zmq::socket_t make_socket(zmq::socket_type type) {
  zmq::socket_t socket(context(), type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(largest_message));
  return socket;
}

std::optional<std::string> ipc_path(const std::string& endpoint) {
  if (endpoint.starts_with("tcp://")) return std::nullopt;
  if (!endpoint.starts_with("ipc://") || endpoint.size() == 6) {
    fail("Endpoint {} is neither ipc://PATH nor tcp://HOST:PORT.", endpoint);
  }
  std::string path = endpoint.substr(6);
  constexpr std::size_t longest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > longest) {
    fail("Socket path {} has {} characters, {} are allowed: use a run directory with a shorter name.", path,
         path.size(), longest);
  }
  return path;
}

namespace {

// Milliseconds. A peer whose machine vanished is noticed, and the connection made anew.
constexpr int ping_every = 2000;
constexpr int ping_patience = 6000;

void watch_peer(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::ipv6, true);
  socket.set(zmq::sockopt::heartbeat_ivl, ping_every);
  socket.set(zmq::sockopt::heartbeat_timeout, ping_patience);
}

}  // namespace

void secure_as_server(zmq::socket_t& socket, const std::string& secret_key) {
  public_key_of(secret_key);
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, secret_key);
  watch_peer(socket);
}

void secure_as_client(zmq::socket_t& socket, const std::string& server_key) {
  if (!is_key(server_key)) fail("A key of {} characters is none of CURVE.", server_key.size());
  KeyPair own = make_key_pair();
  socket.set(zmq::sockopt::curve_serverkey, server_key);
  socket.set(zmq::sockopt::curve_publickey, own.public_key);
  socket.set(zmq::sockopt::curve_secretkey, own.secret_key);
  watch_peer(socket);
}

void require_key(const std::string& endpoint, const std::string& key) {
  if (!ipc_path(endpoint) && key.empty())
    fail("Endpoint {} has no key, and nothing goes over a network without one.", endpoint);
}

void poll_until(zmq::pollitem_t* items, std::size_t count, Deadline deadline) {
  auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count() + 1;
  try {
    zmq::poll(items, count, std::chrono::milliseconds(std::min<long long>(milliseconds, 60'000)));
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
    for (std::size_t i = 0; i < count; ++i) items[i].revents = 0;
  }
}

}  // namespace ganymede::msg
