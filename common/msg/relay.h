#pragma once

#include <functional>
#include <string>

#include "common/msg/message.h"
#include "common/msg/server.h"
#include "common/msg/socket.h"

/// Included by the .cpp files of this folder alone.
namespace ganymede::msg {

/// The way of a server's requests to another server and back, without waiting: what is sent in vain is lost, and its
/// sender asks again. Used from the server's thread.
class Relay {
 public:
  /// Throws Error when the endpoint cannot be used.
  explicit Relay(const RelayOptions& options);

  bool takes(const Message& request) const { return takes_(request); }
  /// Passes on a request of `origin`. Nothing is queued while there is no connection.
  void pass(const std::string& origin, const Message& request);
  /// Hands `deliver` every answer that has come, verified. What is not a valid message is dropped; `complain` is told.
  void collect(const std::function<void(const std::string& origin, const Message& reply)>& deliver,
               const std::function<void(const std::string&)>& complain);
  void* handle() { return socket_.handle(); }

 private:
  std::function<bool(const Message&)> takes_;
  zmq::socket_t socket_;
};

}  // namespace ganymede::msg
