#include "common/msg/server.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include "common/base/error.h"
#include "common/base/log.h"
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
  os::Fd lock;
  os::Fd stop;
  zmq::socket_t socket;
  std::set<std::string> logged;
  std::thread thread;

  void serve();
  void serve_one();
  Message answer(const std::string& identity, const Message& request);
  void log_once(const std::string& identity, const std::string& reason);
};

void Server::State::serve() {
  zmq::pollitem_t items[] = {{socket.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, stop.get(), ZMQ_POLLIN, 0}};
  while (true) {
    poll_until(items, 2, Deadline::after_seconds(60));
    if ((items[1].revents & ZMQ_POLLIN) != 0) return;
    if ((items[0].revents & ZMQ_POLLIN) != 0) serve_one();
  }
}

/// Takes one multipart message whole: [identity, envelope]. What has another form is dropped.
void Server::State::serve_one() {
  zmq::message_t first, payload, rest;
  if (!socket.recv(first, zmq::recv_flags::dontwait)) return;
  std::string identity = first.to_string();
  std::size_t parts = 1;
  for (bool more = first.more(); more; ++parts) {
    zmq::message_t& part = parts == 1 ? payload : rest;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) break;
    more = part.more();
  }
  if (parts != 2) return log_once(identity, fmt::format("it sent a message of {} parts", parts - 1));
  try {
    Message request = Message::parse({payload.data<std::byte>(), payload.size()});
    Message reply = answer(identity, request);
    socket.send(first, zmq::send_flags::sndmore | zmq::send_flags::dontwait);
    socket.send(zmq::buffer(reply.bytes().data(), reply.bytes().size()), zmq::send_flags::dontwait);
  } catch (const NoAnswer&) {  // the client asks again
  } catch (const Error& error) {
    log_once(identity, error.what());
  } catch (const zmq::error_t& error) {
    log_once(identity, error.what());
  }
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

Server::Server(const std::string& endpoint, Handler handler) : state_(std::make_unique<State>()) {
  state_->handler = std::move(handler);
  if (auto path = ipc_path(endpoint)) {
    state_->lock = claim(*path);
    state_->path = *path;
  }
  state_->stop = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state_->stop) fail("No event descriptor could be made: {}.", std::strerror(errno));
  state_->socket = make_socket(zmq::socket_type::router);
  state_->socket.set(zmq::sockopt::router_handover, true);
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
