#include "common/shm/keeper_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "common/base/error.h"
#include "common/shm/keeper_protocol.h"

namespace ganymede::shm {
namespace {

struct Answer {
  std::vector<char> payload;
  std::uint32_t count = 0;
  os::Fd fd;
};

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) fail("The keeper's socket path {} is longer than 107 characters.", path);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

os::Fd connect_to(const std::string& path, Deadline deadline) {
  sockaddr_un address = address_of(path);
  os::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail("No socket for the keeper could be made: {}.", std::strerror(errno));
  while (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    bool busy = errno == EAGAIN || errno == EINTR;
    if (!busy) fail("The keeper cannot be reached at {} ({}): is the run still alive?", path, std::strerror(errno));
    if (deadline.passed()) fail("The keeper at {} took no connection before the deadline.", path);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return socket;
}

/// The descriptor that came with a message, if one did.
os::Fd received_fd(msghdr& message) {
  os::Fd fd;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int raw = -1;
    std::memcpy(&raw, CMSG_DATA(part), sizeof(raw));
    fd = os::Fd(raw);
  }
  return fd;
}

Answer receive(const os::Fd& socket, const std::string& path, Deadline deadline) {
  pollfd waiting{socket.get(), POLLIN, 0};
  while (::poll(&waiting, 1, static_cast<int>(deadline.left().count() / 1'000'000) + 1) <= 0) {
    if (deadline.passed()) fail("The keeper at {} did not answer before the deadline.", path);
  }
  std::vector<char> buffer(sizeof(KeeperReply) + most_held_segments * sizeof(KeeperListing));
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec data{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0) fail("The keeper at {} could not be heard: {}.", path, std::strerror(errno));
  os::Fd fd = received_fd(message);
  KeeperReply reply;
  if (static_cast<std::size_t>(got) < sizeof(reply))
    fail("The keeper at {} closed the connection without an answer.", path);
  std::memcpy(&reply, buffer.data(), sizeof(reply));
  std::vector<char> payload(buffer.begin() + sizeof(reply), buffer.begin() + got);
  if (reply.status != 0) fail("{}", std::string(payload.data(), payload.size()));
  return {std::move(payload), reply.count, std::move(fd)};
}

Answer ask(const std::string& path, KeeperOperation operation, const std::string& name, std::uint64_t bytes,
           Deadline deadline) {
  if (operation != KeeperOperation::list && !valid_held_name(name)) {
    fail("\"{}\" is no name for a segment: 1 to 63 characters of a-z, 0-9, '.', '_', '-' and '/' are.", name);
  }
  KeeperRequest request;
  request.operation = operation;
  request.bytes = bytes;
  std::copy(name.begin(), name.end(), request.name);
  os::Fd socket = connect_to(path, deadline);
  if (::send(socket.get(), &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request)) {
    fail("The keeper at {} took no request: {}.", path, std::strerror(errno));
  }
  return receive(socket, path, deadline);
}

os::Fd ask_for_fd(const std::string& path, KeeperOperation operation, const std::string& name, std::uint64_t bytes,
                  Deadline deadline) {
  Answer answer = ask(path, operation, name, bytes, deadline);
  if (!answer.fd) fail("The keeper at {} answered for \"{}\" without a descriptor.", path, name);
  return std::move(answer.fd);
}

}  // namespace

bool valid_held_name(std::string_view name) {
  if (name.empty() || name.size() > longest_held_name || name.back() == '/') return false;
  char before = '/';
  for (char c : name) {
    bool letter_or_digit = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    bool mark = c == '.' || c == '_' || c == '-' || c == '/';
    if (!letter_or_digit && (!mark || before == '/')) return false;
    before = c;
  }
  return true;
}

os::Fd KeeperClient::create(const std::string& name, std::uint64_t bytes, Deadline deadline) const {
  return ask_for_fd(path_, KeeperOperation::create, name, bytes, deadline);
}

os::Fd KeeperClient::get(const std::string& name, Deadline deadline) const {
  return ask_for_fd(path_, KeeperOperation::get, name, 0, deadline);
}

void KeeperClient::drop(const std::string& name, Deadline deadline) const {
  ask(path_, KeeperOperation::drop, name, 0, deadline);
}

std::vector<HeldSegment> KeeperClient::list(Deadline deadline) const {
  Answer answer = ask(path_, KeeperOperation::list, "", 0, deadline);
  if (answer.payload.size() != answer.count * sizeof(KeeperListing)) fail("The keeper at {} sent a torn list.", path_);
  std::vector<HeldSegment> held;
  for (std::uint32_t i = 0; i < answer.count; ++i) {
    KeeperListing listing;
    std::memcpy(&listing, answer.payload.data() + i * sizeof(listing), sizeof(listing));
    listing.name[longest_held_name] = 0;
    held.push_back({listing.name, listing.bytes});
  }
  return held;
}

std::string held_name(int rank, const std::string& segment) { return fmt::format("rank.{}/{}", rank, segment); }

}  // namespace ganymede::shm
