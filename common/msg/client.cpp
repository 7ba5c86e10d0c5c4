#include "common/msg/client.h"

#include <sys/random.h>

#include <algorithm>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/msg/connection_watch.h"
#include "common/msg/socket.h"

namespace ganymede::msg {
namespace {

constexpr auto resend_after = std::chrono::seconds(1);
constexpr int refused_for_good = 3;  // handshakes in a row; fewer may be a server that was ending

/// Ids start at a random number: a reply to this process's predecessor, which had the same identity, must not be
/// taken for a reply to us.
std::uint64_t first_id() {
  std::uint64_t id = 0;
  if (::getrandom(&id, sizeof(id), 0) != sizeof(id)) fail("The kernel gives no random numbers.");
  return id;
}

ExitCode exit_code_of(int value) {
  switch (value) {
    case static_cast<int>(ExitCode::done):
      return ExitCode::done;
    case static_cast<int>(ExitCode::usage):
      return ExitCode::usage;
    case static_cast<int>(ExitCode::can_go_on):
      return ExitCode::can_go_on;
    default:
      return ExitCode::failed;
  }
}

}  // namespace

struct Client::State {
  std::string endpoint;
  std::uint64_t job = 0;
  std::uint64_t next_id = 0;
  zmq::socket_t socket;
  std::optional<ConnectionWatch> watch;  // of a connection with a key

  /// Sends when a connection stands; false when there is none yet.
  bool send(const Message& request) {
    return socket.send(zmq::buffer(request.bytes().data(), request.bytes().size()), zmq::send_flags::dontwait)
        .has_value();
  }

  /// The next frame, or nothing when none came before the deadline. Parts after the first are dropped.
  std::optional<zmq::message_t> receive(Deadline deadline) {
    zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
    poll_until(&item, 1, deadline);
    zmq::message_t frame, rest;
    if (!socket.recv(frame, zmq::recv_flags::dontwait)) return std::nullopt;
    bool more = frame.more();
    while (more && socket.recv(rest, zmq::recv_flags::dontwait)) more = rest.more();
    return frame;
  }

  void check_key() {
    if (!watch) return;
    watch->look();
    if (watch->ever_connected() || watch->refused_handshakes() < refused_for_good) return;
    fail_usage("{} does not take our key: the key is of another run, or another program listens there.", endpoint);
  }

  std::string why_no_answer() {
    if (watch) watch->look();
    if (watch && !watch->ever_reached()) return "nothing listens there, or the network does not lead to it";
    return "its process has ended or hangs";
  }

  void await_connection(Deadline deadline) {
    zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLOUT, 0};
    poll_until(&item, 1, deadline);
  }
};

Client::Client(std::string endpoint, const std::string& identity, std::uint64_t job, const std::string& server_key)
    : state_(std::make_unique<State>()) {
  require_key(endpoint, server_key);
  state_->endpoint = std::move(endpoint);
  state_->job = job;
  state_->next_id = first_id();
  state_->socket = make_socket(zmq::socket_type::dealer);
  state_->socket.set(zmq::sockopt::routing_id, identity);
  // Without a connection nothing is queued: a server that comes late gets the request once, not once a retry.
  state_->socket.set(zmq::sockopt::immediate, true);
  state_->socket.set(zmq::sockopt::reconnect_ivl, 50);
  if (!server_key.empty()) {
    secure_as_client(state_->socket, server_key);
    state_->socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
    state_->watch.emplace(state_->socket);
  }
  try {
    state_->socket.connect(state_->endpoint);
  } catch (const zmq::error_t& error) {
    fail("Endpoint {} cannot be used: {}.", state_->endpoint, error.what());
  }
}

Client::~Client() = default;

void Client::set_job(std::uint64_t job) { state_->job = job; }

Message Client::call(const Fill& fill, Deadline deadline) {
  Message request = Message::build(state_->job, ++state_->next_id, fill);
  const char* asked = fbs::EnumNameBody(request.envelope().body_type());
  auto started = Clock::now();
  Deadline resend = Deadline::after(std::chrono::nanoseconds(0));
  do {
    state_->check_key();
    if (resend.passed()) {
      state_->await_connection(Deadline::after(std::min<std::chrono::nanoseconds>(deadline.left(), resend_after)));
      if (!state_->send(request)) continue;
      resend = Deadline::after(resend_after);
    }
    auto frame = state_->receive(Deadline::after(std::min(deadline.left(), resend.left())));
    if (!frame) continue;
    Message reply = Message::parse({frame->data<std::byte>(), frame->size()});
    if (reply.envelope().id() != request.envelope().id()) continue;
    if (const auto* no = reply.as<fbs::Refused>()) throw Refusal(exit_code_of(no->exit_code()), no->text()->str());
    return reply;
  } while (!deadline.passed());
  double waited = seconds_since(started);
  fail("{} did not answer a {} within {}: {}.", state_->endpoint, asked, human_seconds(waited),
       state_->why_no_answer());
}

}  // namespace ganymede::msg
