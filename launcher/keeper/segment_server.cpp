#include "launcher/keeper/segment_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/base/error.h"
#include "common/shm/keeper_protocol.h"

namespace ganymede::keeper {
namespace {

constexpr double patience_seconds = 2;
constexpr std::size_t most_connections = 64;

struct Reply {
  shm::KeeperReply head;
  std::vector<char> payload;
  int fd = -1;  // not owned
};

/// The name of a request whose every byte has been looked at. Throws Error.
std::string checked_name(const shm::KeeperRequest& request) {
  std::size_t length = ::strnlen(request.name, sizeof(request.name));
  bool padded = std::all_of(request.name + length, std::end(request.name), [](char c) { return c == 0; });
  std::string name(request.name, length);
  if (request.operation == shm::KeeperOperation::list) {
    if (length != 0 || !padded) fail("A list is asked for without a name.");
  } else if (!padded || !shm::valid_held_name(name)) {
    fail("A name of a segment has 1 to {} characters of a-z, 0-9, '.', '_', '-' and '/'.", shm::longest_held_name);
  }
  if (request.operation != shm::KeeperOperation::create && request.bytes != 0) fail("Only a new segment has a size.");
  return name;
}

Reply listing(const SegmentStore& store) {
  Reply reply;
  for (const auto& [name, held] : store.held()) {
    shm::KeeperListing line;
    line.bytes = held.bytes;
    std::copy(name.begin(), name.end(), line.name);
    const auto* first = reinterpret_cast<const char*>(&line);
    reply.payload.insert(reply.payload.end(), first, first + sizeof(line));
    ++reply.head.count;
  }
  return reply;
}

Reply carry_out(SegmentStore& store, const shm::KeeperRequest& request, std::size_t length) {
  if (length != sizeof(request) || request.magic != shm::keeper_magic) fail("This is no request to a keeper.");
  std::string name = checked_name(request);
  switch (request.operation) {
    case shm::KeeperOperation::create:
      return {{}, {}, store.create(name, request.bytes)};
    case shm::KeeperOperation::get:
      return {{}, {}, store.get(name)};
    case shm::KeeperOperation::drop:
      store.drop(name);
      return {};
    case shm::KeeperOperation::list:
      return listing(store);
  }
  fail("The keeper knows no operation {}.", static_cast<std::uint32_t>(request.operation));
}

Reply refusal(const std::string& text) {
  return {{1, static_cast<std::uint32_t>(text.size())}, {text.begin(), text.end()}, -1};
}

/// A client that does not take its answer loses it.
void send(int socket, Reply& reply) {
  iovec parts[] = {{&reply.head, sizeof(reply.head)}, {reply.payload.data(), reply.payload.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (reply.fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &reply.fd, sizeof(int));
  }
  ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace

SegmentServer::SegmentServer(std::string path, SegmentStore& store)
    : path_(std::move(path)),
      store_(store),
      listening_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      ready_(::epoll_create1(EPOLL_CLOEXEC)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path)) fail("Socket path {} is longer than 107 characters.", path_);
  std::copy(path_.begin(), path_.end(), address.sun_path);
  ::unlink(path_.c_str());
  if (!listening_ || !ready_ || ::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listening_.get(), 128) != 0) {
    fail("Socket {} cannot be served: {}.", path_, std::strerror(errno));
  }
  watch(listening_.get());
}

SegmentServer::~SegmentServer() { ::unlink(path_.c_str()); }

void SegmentServer::watch(int socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket;
  if (::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, socket, &event) != 0) {
    fail("Socket {} cannot be watched: {}.", path_, std::strerror(errno));
  }
}

void SegmentServer::serve() {
  std::array<epoll_event, most_connections> events;
  int count = ::epoll_wait(ready_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == listening_.get()) continue;
    answer(events[i].data.fd);
    connections_.erase(events[i].data.fd);
  }
  std::erase_if(connections_, [](const auto& connection) { return connection.second.deadline.passed(); });
  accept_all();
}

void SegmentServer::accept_all() {
  while (true) {
    os::Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    bool full = socket ? connections_.size() >= most_connections : errno == EMFILE || errno == ENFILE;
    if (full && !connections_.empty()) {
      auto oldest = std::min_element(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
        return a.second.deadline.left() < b.second.deadline.left();
      });
      connections_.erase(oldest);
    }
    if (!socket) return;
    if (!same_user(socket.get())) continue;
    watch(socket.get());
    int key = socket.get();
    connections_.emplace(key, Connection{std::move(socket), Deadline::after_seconds(patience_seconds)});
  }
}

/// One request and one reply; the caller closes.
void SegmentServer::answer(int socket) {
  shm::KeeperRequest request;
  ssize_t length = ::recv(socket, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
  if (length <= 0) return;
  Reply reply;
  try {
    reply = carry_out(store_, request, static_cast<std::size_t>(length));
  } catch (const Error& error) {
    reply = refusal(error.what());
  }
  send(socket, reply);
}

}  // namespace ganymede::keeper
