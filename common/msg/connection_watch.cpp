#include "common/msg/connection_watch.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "common/base/error.h"
#include "common/msg/socket.h"

namespace ganymede::msg {
namespace {

constexpr int refusals =
    ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

}  // namespace

ConnectionWatch::ConnectionWatch(zmq::socket_t& socket) : events_(context(), zmq::socket_type::pair) {
  static std::atomic<int> number{0};
  std::string endpoint = fmt::format("inproc://connection-watch-{}", ++number);
  int wanted = refusals | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
  if (zmq_socket_monitor(socket.handle(), endpoint.c_str(), wanted) != 0)
    fail("A connection cannot be watched: {}.", zmq_strerror(zmq_errno()));
  events_.set(zmq::sockopt::linger, 0);
  events_.connect(endpoint);
}

void ConnectionWatch::look() {
  zmq::message_t event, address;
  while (events_.recv(event, zmq::recv_flags::dontwait)) {
    if (event.more() && !events_.recv(address, zmq::recv_flags::none)) return;
    std::uint16_t kind = 0;
    if (event.size() < sizeof(kind)) continue;
    std::memcpy(&kind, event.data(), sizeof(kind));
    if (kind == ZMQ_EVENT_CONNECTED) reached_ = true;
    if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) connected_ = true;
    if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) refused_ = 0;
    if ((kind & refusals) != 0) ++refused_;
  }
}

}  // namespace ganymede::msg
