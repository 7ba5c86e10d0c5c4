#pragma once

#include "common/msg/message.h"

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ganymede::msg {

/// Thrown by a handler that cannot answer now: nothing is sent back, and the client asks again until its deadline.
class NoAnswer : public std::exception {};

/// Where a server passes on what it does not answer itself.
struct RelayOptions {
  std::string endpoint, server_key;           // as those of a Client
  std::string identity;                       // of this server at the other
  std::function<bool(const Message&)> takes;  // called in the server's thread
};

struct ServerOptions {
  std::string secret_key;  // of a tcp server (curve.h), which is never bound without one
  std::optional<RelayOptions> relay = {};
};

/// A ROUTER socket with hand-over of identities, served by one thread. A frame that is not a valid message is
/// logged once per peer and dropped; the server goes on.
class Server {
 public:
  /// Called in the server's thread for each request; the result is sent back. An Error that it throws is answered
  /// as Refused with its text, NoAnswer with nothing. The identity of a request that a server with a relay passed on
  /// is "server/peer".
  using Handler = std::function<Message(const std::string& identity, const Message& request)>;

  /// Binds and starts. For ipc:// a lock file beside the path guards against taking over a live server's socket:
  /// throws Error when it is held.
  Server(const std::string& endpoint, Handler handler, const ServerOptions& options = {});
  /// Stops the thread, unbinds, removes the socket file.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ganymede::msg
