#pragma once

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/msg/message.h"

#include <memory>
#include <string>

namespace ganymede::msg {

/// The other side's Refused, with its text and exit code.
class Refusal : public Error {
  using Error::Error;
};

/// Sends requests to one server and waits for the reply with the same id. A request that gets no reply within a
/// second is sent again (requests are idempotent) until the deadline. Not thread-safe: one client a thread.
class Client {
 public:
  /// `endpoint`: "ipc://ipc/launcher.sock" (relative to the run directory) or "tcp://host:port".
  /// `identity` names the peer at the server ("worker.3"); a reconnecting one takes over its predecessor's.
  /// `server_key`: public key of a tcp server (curve.h), which is never reached without one.
  Client(std::string endpoint, const std::string& identity, std::uint64_t job, const std::string& server_key = "");
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  using Fill = std::function<Message::BodyOffset(flatbuffers::FlatBufferBuilder&)>;
  /// The reply's message. Throws Error when the deadline passes, when the reply is Refused (as Refusal, with its text
  /// and exit code), or when what came is not a valid message. The first server of all that refuses the key again and
  /// again ends the call early, with Error(usage).
  Message call(const Fill& fill, Deadline deadline);
  /// Requests are of this job from now on.
  void set_job(std::uint64_t job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ganymede::msg
