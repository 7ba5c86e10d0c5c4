#include "common/msg/server.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/msg/relay.h"
#include "common/msg/socket.h"
#include "common/os/fd.h"
#include "common/os/files.h"

namespace ganymede::msg {
namespace {

// Identities come from outside and must not fill memory, disk or a person's screen.
constexpr std::size_t most_logged_peers = 64;
constexpr std::size_t longest_shown_identity = 40;

std::string printable(const std::string& identity) {
  std::string text;
  for (unsigned char c : identity.substr(0, longest_shown_identity))
    text += std::isgraph(c) != 0 ? std::string(1, c) : fmt::format("\\x{:02x}", c);
  return identity.size() > longest_shown_identity ? text + "..." : text;
}

/// Who holds the lock, as it wrote into the file; for the message only.
std::string holder(const std::string& lock) {
  std::string text = os::read_file(lock);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

/// Takes the lock of an ipc path. A socket that a dead process left is removed; anything else there is kept.
os::Fd claim(const std::string& path) {
  std::string lock_path = path + ".lock";
  auto lock = os::try_lock(lock_path);
  if (!lock) fail("Socket {} is in use by process {}.", path, holder(lock_path));
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) fail("{} is in the way of a socket of that name: remove it.", path);
    ::unlink(path.c_str());
  }
  return std::move(*lock);
}

}  // namespace

struct Server::State {
  Handler handler;
  std::string path;  // of an ipc socket, else empty
  bool takes_relayed = false;
  os::Fd lock;
  os::Fd stop;
  zmq::socket_t socket;
  std::optional<Relay> relay;
  std::set<std::string> logged;
  std::thread thread;

  void serve();
  void serve_one();
  void serve_request(const std::vector<zmq::message_t>& route, const Message& request);
  void deliver_relayed();
  void reply(const std::vector<zmq::message_t>& route, const Message& message);
  Message answer(const std::string& identity, const Message& request);
  void log_once(const std::string& identity, const std::string& reason);
};

void Server::State::serve() {
  zmq::pollitem_t items[] = {{socket.handle(), 0, ZMQ_POLLIN, 0},
                             {nullptr, stop.get(), ZMQ_POLLIN, 0},
                             {relay ? relay->handle() : nullptr, stop.get(), ZMQ_POLLIN, 0}};
  while (true) {
    poll_until(items, relay ? 3 : 2, Deadline::after_seconds(60));
    if ((items[1].revents & ZMQ_POLLIN) != 0) return;
    if ((items[0].revents & ZMQ_POLLIN) != 0) serve_one();
    if (relay && (items[2].revents & ZMQ_POLLIN) != 0) deliver_relayed();
  }
}

/// Takes one multipart message whole: [identity, envelope], or [server, identity, envelope] where a server passes on
/// what its own peers asked. What has another form is dropped.
void Server::State::serve_one() {
  std::vector<zmq::message_t> parts(1);
  if (!socket.recv(parts[0], zmq::recv_flags::dontwait)) return;
  std::size_t count = 1;
  for (bool more = parts[0].more(); more; ++count) {
    zmq::message_t part;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) break;
    more = part.more();
    if (count < 3) parts.push_back(std::move(part));
  }
  std::string peer = parts[0].to_string();
  if (count != 2 && !(count == 3 && takes_relayed))
    return log_once(peer, fmt::format("it sent a message of {} parts", count - 1));
  zmq::message_t payload = std::move(parts.back());
  parts.pop_back();
  try {
    serve_request(parts, Message::parse({payload.data<std::byte>(), payload.size()}));
  } catch (const NoAnswer&) {  // the client asks again
  } catch (const Error& error) {
    log_once(peer, error.what());
  } catch (const zmq::error_t& error) {
    log_once(peer, error.what());
  }
}

void Server::State::serve_request(const std::vector<zmq::message_t>& route, const Message& request) {
  std::string identity = route[0].to_string();
  if (relay && relay->takes(request)) return relay->pass(identity, request);
  for (std::size_t i = 1; i < route.size(); ++i) identity += "/" + route[i].to_string();
  reply(route, answer(identity, request));
}

void Server::State::reply(const std::vector<zmq::message_t>& route, const Message& message) {
  for (const zmq::message_t& part : route)
    socket.send(zmq::buffer(part.data(), part.size()), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
  socket.send(zmq::buffer(message.bytes().data(), message.bytes().size()), zmq::send_flags::dontwait);
}

void Server::State::deliver_relayed() {
  relay->collect(
      [this](const std::string& origin, const Message& message) {
        std::vector<zmq::message_t> route;
        route.emplace_back(origin);
        reply(route, message);
      },
      [this](const std::string& reason) { log_once("the server that requests are passed on to", reason); });
}

Message Server::State::answer(const std::string& identity, const Message& request) {
  try {
    return handler(identity, request);
  } catch (const NoAnswer&) {
    throw;
  } catch (const Error& error) {
    return refused(request, static_cast<int>(error.code()), error.what());
  } catch (const std::exception& error) {
    return refused(request, static_cast<int>(ExitCode::failed), error.what());
  }
}

void Server::State::log_once(const std::string& identity, const std::string& reason) {
  if (logged.size() >= most_logged_peers || !logged.insert(identity).second) return;
  log::warn("A message from peer \"{}\" was dropped, and further ones will be without a line: {}", printable(identity),
            reason);
}

Server::Server(const std::string& endpoint, Handler handler, const ServerOptions& options)
    : state_(std::make_unique<State>()) {
  require_key(endpoint, options.secret_key);
  state_->handler = std::move(handler);
  state_->takes_relayed = !options.secret_key.empty();
  if (options.relay) state_->relay.emplace(*options.relay);
  if (auto path = ipc_path(endpoint)) {
    state_->lock = claim(*path);
    state_->path = *path;
  }
  state_->stop = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state_->stop) fail("No event descriptor could be made: {}.", std::strerror(errno));
  state_->socket = make_socket(zmq::socket_type::router);
  state_->socket.set(zmq::sockopt::router_handover, true);
  if (!options.secret_key.empty()) secure_as_server(state_->socket, options.secret_key);
  try {
    state_->socket.bind(endpoint);
  } catch (const zmq::error_t& error) {
    fail("Endpoint {} cannot be served: {}.", endpoint, error.what());
  }
  state_->thread = std::thread([this] { state_->serve(); });
}

Server::~Server() {
  ::eventfd_write(state_->stop.get(), 1);
  state_->thread.join();
  state_->socket.close();
  if (!state_->path.empty()) ::unlink(state_->path.c_str());
}

}  // namespace ganymede::msg
