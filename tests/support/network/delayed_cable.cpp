#include "tests/support/network/delayed_cable.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <vector>

#include "common/base/error.h"

namespace ganymede::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

/// A frame may be a segment of 64 KiB that the interface is to cut, and have its checksum missing: both stand in the
/// header that comes with it (PACKET_VNET_HDR) and goes on with it.
constexpr std::size_t longest_frame = 70'000;

void set(const os::Fd& socket, int level, int option, int value, const std::string& interface) {
  if (::setsockopt(socket.get(), level, option, &value, sizeof value) != 0)
    fail("Frames of {} cannot be carried: {}.", interface, std::strerror(errno));
}

os::Fd frames_of(const std::string& interface) {
  os::Fd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail("Frames of {} cannot be read: {}.", interface, std::strerror(errno));
  set(socket, SOL_PACKET, PACKET_VNET_HDR, 1, interface);
  set(socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, interface);
  set(socket, SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20, interface);
  set(socket, SOL_SOCKET, SO_SNDBUFFORCE, 64 << 20, interface);
  auto index = static_cast<int>(::if_nametoindex(interface.c_str()));
  packet_mreq all{};
  all.mr_ifindex = index;
  all.mr_type = PACKET_MR_PROMISC;
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = index;
  if (index == 0 || ::setsockopt(socket.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail("Frames of {} cannot be read: {}.", interface, std::strerror(errno));
  return socket;
}

/// A frame that finds no room is lost, as on a cable.
void send(const os::Fd& to, const std::vector<char>& frame) {
  while (::send(to.get(), frame.data(), frame.size(), 0) < 0 && errno == EINTR) {
  }
}

/// The next one, empty when there is none now.
std::vector<char> receive(const os::Fd& from) {
  static thread_local std::array<char, longest_frame> room;
  ssize_t length = ::recv(from.get(), room.data(), room.size(), 0);
  return length > 0 ? std::vector<char>(room.begin(), room.begin() + length) : std::vector<char>();
}

timespec until(const std::deque<Frame>& waiting) {
  auto left = std::chrono::nanoseconds(std::chrono::milliseconds(50));
  if (!waiting.empty()) left = std::clamp<std::chrono::nanoseconds>(waiting.front().due - Clock::now(), {}, left);
  return {0, static_cast<long>(left.count())};
}

}  // namespace

DelayedCable::DelayedCable(const std::string& space, const std::string& first, const std::string& second,
                           double milliseconds) {
  std::exception_ptr failed;
  // A socket belongs to the namespace of the thread that makes it.
  std::thread inside([&] {
    try {
      os::Fd there(::open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC));
      if (!there || ::setns(there.get(), CLONE_NEWNET) != 0)
        fail("The network namespace {} cannot be entered: {}.", space, std::strerror(errno));
      first_ = frames_of(first);
      second_ = frames_of(second);
    } catch (...) {
      failed = std::current_exception();
    }
  });
  inside.join();
  if (failed) std::rethrow_exception(failed);
  thread_ = std::thread([this, milliseconds] { carry(milliseconds / 1000); });
}

DelayedCable::~DelayedCable() {
  ended_ = true;
  thread_.join();
}

void DelayedCable::carry(double seconds) {
  auto delay = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::deque<Frame> waiting;
  while (!ended_) {
    std::array<pollfd, 2> sockets{{{first_.get(), POLLIN, 0}, {second_.get(), POLLIN, 0}}};
    timespec left = until(waiting);
    ::ppoll(sockets.data(), sockets.size(), &left, nullptr);
    for (auto frame = receive(first_); !frame.empty(); frame = receive(first_))
      waiting.push_back({Clock::now() + delay, std::move(frame)});
    for (auto frame = receive(second_); !frame.empty(); frame = receive(second_)) send(first_, frame);
    for (; !waiting.empty() && waiting.front().due <= Clock::now(); waiting.pop_front())
      send(second_, waiting.front().bytes);
  }
}

}  // namespace ganymede::test
