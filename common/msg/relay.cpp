#include "common/msg/relay.h"

#include "common/base/error.h"

namespace ganymede::msg {
namespace {

constexpr int most_at_once = 64;  // answers that are taken before the server looks at its own requests again

}  // namespace

Relay::Relay(const RelayOptions& options) : takes_(options.takes), socket_(make_socket(zmq::socket_type::dealer)) {
  require_key(options.endpoint, options.server_key);
  if (!options.server_key.empty()) secure_as_client(socket_, options.server_key);
  socket_.set(zmq::sockopt::routing_id, options.identity);
  socket_.set(zmq::sockopt::immediate, true);
  socket_.set(zmq::sockopt::reconnect_ivl, 50);
  socket_.set(zmq::sockopt::reconnect_ivl_max, 1000);
  try {
    socket_.connect(options.endpoint);
  } catch (const zmq::error_t& error) {
    fail("Endpoint {} cannot be used: {}.", options.endpoint, error.what());
  }
}

void Relay::pass(const std::string& origin, const Message& request) {
  auto bytes = request.bytes();
  if (!socket_.send(zmq::buffer(origin), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return;
  socket_.send(zmq::buffer(bytes.data(), bytes.size()), zmq::send_flags::dontwait);
}

void Relay::collect(const std::function<void(const std::string&, const Message&)>& deliver,
                    const std::function<void(const std::string&)>& complain) {
  zmq::message_t origin, payload, rest;
  for (int taken = 0; taken < most_at_once && socket_.recv(origin, zmq::recv_flags::dontwait); ++taken) {
    bool whole = origin.more() && socket_.recv(payload, zmq::recv_flags::dontwait) && !payload.more();
    for (bool more = !whole && (payload.more() || origin.more()); more;)
      more = socket_.recv(rest, zmq::recv_flags::dontwait) && rest.more();
    if (!whole) {
      complain("an answer of another form was dropped");
      continue;
    }
    try {
      deliver(origin.to_string(), Message::parse({payload.data<std::byte>(), payload.size()}));
    } catch (const Error& error) {
      complain(error.what());
    }
  }
}

}  // namespace ganymede::msg
