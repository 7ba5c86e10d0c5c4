#pragma once

#include <string>

/// The key that keeps strangers out of a run over several nodes: the public key of the coordinator's socket, known to
/// nobody but the run's nodes. Both files lie in node 0's run directory with mode 0600 and stay there, so a coordinator
/// that is started again, and a run that goes on, have the same.
namespace ganymede::coordinator {

constexpr const char* secret_key_file = "ipc/coordinator.secret";
constexpr const char* node_key_file = "ipc/coordinator.key";  // what nodes need

/// The coordinator's secret key, of the run directory that is the current folder; made on first use. Throws Error.
std::string coordinator_secret();

/// The key in `file`. Nothing when there is no such file (yet). Throws Error when it holds none.
std::string read_node_key(const std::string& file);

}  // namespace ganymede::coordinator
