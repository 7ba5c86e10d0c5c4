#pragma once

#include <string>
#include <vector>

#include "launcher/coordinator/world_layout.h"

/// How this machine reaches the others.
namespace ganymede::coordinator {

/// Where the coordinator listens: at the address that was named, or, for a host name (which often leads to the loopback
/// on its own machine), at all addresses of this machine.
std::string listening_endpoint(const NodeAddress& address);
std::string coordinator_endpoint(const NodeAddress& address);

/// The network interface ("eth0") over which this machine reaches `host`; "lo" for this machine itself. Throws Error
/// when the host is not known or no way leads to it.
std::string interface_towards(const std::string& host);

/// That of a launcher: towards the coordinator, on node 0 towards node 1.
std::string interface_of_node(int node, const std::vector<NodeAddress>& nodes);

/// Throws Error(usage) when this machine has no network interface of this name with an address, naming those that it
/// has.
void check_interface(const std::string& name);

}  // namespace ganymede::coordinator
