#pragma once

#include <zmq.hpp>

/// Included by the .cpp files of this folder alone.
namespace ganymede::msg {

/// What has become of a client's attempts to connect, from the socket's own events. Used from the socket's thread.
class ConnectionWatch {
 public:
  /// `socket` must not be connected yet and must outlive this.
  explicit ConnectionWatch(zmq::socket_t& socket);
  ConnectionWatch(const ConnectionWatch&) = delete;
  ConnectionWatch& operator=(const ConnectionWatch&) = delete;

  /// Takes in what has happened since the last call.
  void look();
  bool ever_connected() const { return connected_; }   // a connection with a completed handshake
  bool ever_reached() const { return reached_; }       // something accepted a connection
  int refused_handshakes() const { return refused_; }  // since the last completed one

 private:
  zmq::socket_t events_;
  bool connected_ = false, reached_ = false;
  int refused_ = 0;
};

}  // namespace ganymede::msg
