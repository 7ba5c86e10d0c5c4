#include "launcher/coordinator/network_path.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/os/fd.h"

namespace ganymede::coordinator {
namespace {

bool is_numeric(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 || inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

/// An address without its port, to compare.
std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address->sa_family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (!bytes || !inet_ntop(address->sa_family, bytes, text.data(), text.size())) return "";
  return text.data();
}

/// The own address from which packets to `to` would go; empty when no way leads there. Nothing is sent.
std::string own_address_towards(const addrinfo& to) {
  os::Fd socket(::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (!socket || ::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) return "";
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return "";
  return address_text(reinterpret_cast<const sockaddr*>(&own));
}

/// Names of the network interfaces of this machine, once for each address.
std::vector<std::pair<std::string, std::string>> interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) fail("The network interfaces cannot be listed: {}.", std::strerror(errno));
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<std::pair<std::string, std::string>> found;
  for (const ifaddrs* one = list; one; one = one->ifa_next)
    if (one->ifa_addr && !address_text(one->ifa_addr).empty())
      found.emplace_back(one->ifa_name, address_text(one->ifa_addr));
  return found;
}

std::string interface_with(const std::string& address) {
  for (const auto& [name, own] : interfaces())
    if (own == address) return name;
  fail("No network interface has this machine's own address {}.", address);
}

}  // namespace

std::string listening_endpoint(const NodeAddress& address) {
  NodeAddress at = address;
  if (!is_numeric(at.host)) at.host = "*";
  return "tcp://" + at.text();
}

std::string coordinator_endpoint(const NodeAddress& address) { return "tcp://" + address.text(); }

std::string interface_towards(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (int error = ::getaddrinfo(host.c_str(), "9", &wanted, &found); error != 0)
    fail_usage("Host {} (--nodes) is not known here: {}.", host, gai_strerror(error));
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* one = found; one; one = one->ai_next)
    if (std::string own = own_address_towards(*one); !own.empty()) return interface_with(own);
  fail_usage("No network of this machine leads to host {} (--nodes): name one with --set topology.interface=NAME.",
             host);
}

std::string interface_of_node(int node, const std::vector<NodeAddress>& nodes) {
  return interface_towards(nodes[node == 0 ? 1 : 0].host);
}

void check_interface(const std::string& name) {
  std::set<std::string> names;
  for (const auto& one : interfaces()) names.insert(one.first);
  if (!names.contains(name))
    fail_usage("Key 'topology.interface' is \"{}\", but the network interfaces of this machine are {}.", name,
               fmt::join(names, ", "));
}

}  // namespace ganymede::coordinator
