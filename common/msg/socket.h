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

/// Waits for one of the events on the items, at most until the deadline; may return early.
void poll_until(zmq::pollitem_t* items, std::size_t count, Deadline deadline);

}  // namespace ganymede::msg
