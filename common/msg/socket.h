#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "common/base/deadline.h"

/// What client and server share of ZeroMQ. Included by the .cpp files of this folder alone.
namespace ganymede::msg {

/// The process's ZeroMQ context. Never destroyed: its end would wait for sockets that a crashing thread left open.
zmq::context_t& context();

/// A socket that never delays the end of the process and refuses long messages before it holds them.
zmq::socket_t make_socket(zmq::socket_type type);

/// Path of an ipc endpoint, nothing for another one. Throws Error when the path is too long for a socket, or the
/// endpoint is neither ipc:// nor tcp://.
std::optional<std::string> ipc_path(const std::string& endpoint);

/// Makes a socket that was not bound or connected yet the server's, or the client's, side of CURVE (curve.h). Throws
/// Error for a key that is none.
void secure_as_server(zmq::socket_t& socket, const std::string& secret_key);
void secure_as_client(zmq::socket_t& socket, const std::string& server_key);

/// Throws Error for a connection between machines without a key: nothing is ever sent in the clear.
void require_key(const std::string& endpoint, const std::string& key);

/// Waits for one of the events on the items, at most until the deadline; may return early.
void poll_until(zmq::pollitem_t* items, std::size_t count, Deadline deadline);

}  // namespace ganymede::msg
