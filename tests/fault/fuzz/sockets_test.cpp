#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <zmq.hpp>

#include "common/base/error.h"
#include "common/msg/client.h"
#include "common/msg/server.h"
#include "common/shm/keeper_client.h"
#include "common/shm/keeper_protocol.h"
#include "tests/fault/fuzz/bytes.h"
#include "tests/fault/fuzz/messages.h"
#include "tests/support/served_segments.h"

namespace ganymede::fuzz {
namespace {

/// Sends the bytes on a connection of its own and leaves; whether the peer takes them does not matter.
void throw_at(const std::string& path, int type, const Bytes& bytes) {
  os::Fd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

class FuzzServer : public testing::Test {
 protected:
  void expect_good_answers() const {
    msg::Client client("ipc://" + path_, "good", 1);
    for (int i = 0; i < 10; ++i) {
      EXPECT_NO_THROW(client.call([](auto& b) { return msg::Message::body(fbs::CreateStatusRequest(b)); },
                                  Deadline::after_seconds(30)));
    }
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/s";
  std::atomic<int> served_ = 0;
  msg::Server server_{"ipc://" + path_, [this](const std::string&, const msg::Message& message) {
                        read_all(message);
                        ++served_;
                        return msg::ack(message);
                      }};
};

TEST_F(FuzzServer, BadFramesOfOnePeerHarmNobodyElse) {
  zmq::context_t context;
  zmq::socket_t raw(context, zmq::socket_type::dealer);
  raw.set(zmq::sockopt::linger, 0);
  raw.connect("ipc://" + path_);
  auto valid = valid_messages();
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    Source source(seed);
    auto bytes = valid[seed % valid.size()].bytes();
    Bytes frame = seed % 3 == 0 ? source.noise(source.below(300)) : source.mutated({bytes.begin(), bytes.end()});
    for (std::uint64_t parts = source.below(10) == 0 ? source.below(6) : 0; parts > 0; --parts) {
      raw.send(zmq::buffer(frame), zmq::send_flags::sndmore);
    }
    raw.send(zmq::buffer(frame), zmq::send_flags::none);
    zmq::message_t answer;
    while (raw.recv(answer, zmq::recv_flags::dontwait)) continue;
    if (seed % 2'500 == 0) expect_good_answers();
  }
  expect_good_answers();
  EXPECT_GT(served_, 100);
}

TEST_F(FuzzServer, BadBytesBelowTheFramesHarmNobodyElse) {
  // A valid greeting of ZMTP 3.0 with the NULL mechanism, then a READY command: mutations of it get past the first
  // checks of the library.
  Bytes handshake(64);
  handshake[0] = std::byte{0xff};
  handshake[9] = std::byte{0x7f};
  handshake[10] = std::byte{3};
  std::memcpy(handshake.data() + 12, "NULL", 4);
  const char ready[] =
      "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x06"
      "DEALER";
  for (std::size_t i = 0; i + 1 < sizeof(ready); ++i) handshake.push_back(static_cast<std::byte>(ready[i]));
  for (std::uint64_t seed = 0; seed < 1'500; ++seed) {
    Source source(seed);
    Bytes bytes = seed % 2 == 0 ? source.noise(source.below(200)) : source.mutated(handshake);
    Bytes tail = source.noise(source.below(100));
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    throw_at(path_, SOCK_STREAM, bytes);
    if (seed % 500 == 0) expect_good_answers();
  }
  expect_good_answers();
}

TEST(FuzzKeeper, BadRequestsChangeNothingThatItHolds) {
  test::ServedSegments served(1u << 30);
  shm::KeeperClient client(served.path());
  os::Fd fd = client.create("rank.0/master", 4096, Deadline::after_seconds(10));
  shm::KeeperRequest good;
  good.operation = shm::KeeperOperation::create;
  good.bytes = 4096;
  std::strcpy(good.name, "rank.0/other");
  const auto* first = reinterpret_cast<const std::byte*>(&good);
  Bytes request(first, first + sizeof(good));
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    Source source(seed);
    throw_at(served.path(), SOCK_SEQPACKET, seed % 4 == 0 ? source.noise(source.below(300)) : source.mutated(request));
    if (seed % 1'000 != 0) continue;
    EXPECT_NO_THROW(client.get("rank.0/master", Deadline::after_seconds(30))) << seed;
  }
  for (const shm::HeldSegment& held : client.list(Deadline::after_seconds(30))) {
    EXPECT_TRUE(shm::valid_held_name(held.name));
    EXPECT_GT(held.bytes, 0u);
    EXPECT_LE(held.bytes, 1u << 30);
  }
}

}  // namespace
}  // namespace ganymede::fuzz
