#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "common/base/error.h"
#include "common/shm/keeper_client.h"
#include "common/shm/keeper_protocol.h"
#include "tests/support/served_segments.h"

namespace ganymede::keeper {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t mebibyte = 1 << 20;

Deadline soon() { return Deadline::after_seconds(20); }

/// A keeper's segments served in a thread of the test.
class Segments : public testing::Test {
 protected:
  os::Fd connect() const {
    os::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, served_.path().data(), served_.path().size());
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }

  /// Status of the reply to raw bytes, -1 when the connection was closed without one.
  int status_of(const void* bytes, std::size_t size) const {
    os::Fd socket = connect();
    EXPECT_EQ(::send(socket.get(), bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    shm::KeeperReply reply;
    ssize_t got = ::recv(socket.get(), &reply, sizeof(reply), 0);
    return got == sizeof(reply) ? static_cast<int>(reply.status) : -1;
  }

  std::string refusal(const std::string& name, std::uint64_t bytes) const {
    try {
      client().create(name, bytes, soon());
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  shm::KeeperClient client() const { return shm::KeeperClient(served_.path()); }

  test::ServedSegments served_{64 * mebibyte};
};

TEST_F(Segments, WhatOneProcessWritesAnotherGets) {
  pid_t child = ::fork();
  if (child == 0) {
    os::Fd fd = client().create("rank.0/master", 2 * mebibyte, soon());
    ::_exit(::pwrite(fd.get(), "hello", 5, 4096) == 5 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  os::Fd fd = client().get("rank.0/master", soon());
  char text[6] = {};
  ASSERT_EQ(::pread(fd.get(), text, 5, 4096), 5);
  EXPECT_STREQ(text, "hello");
}

TEST_F(Segments, TheListNamesAllWithTheirSizes) {
  EXPECT_TRUE(client().list(soon()).empty());
  client().create("rank.1/b", mebibyte, soon());
  client().create("rank.1/a", 3 * mebibyte, soon());
  auto held = client().list(soon());
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].name, "rank.1/a");
  EXPECT_EQ(held[0].bytes, 3 * mebibyte);
  EXPECT_EQ(held[1].name, "rank.1/b");
}

TEST_F(Segments, ADroppedOneIsGoneAndItsNameIsFree) {
  client().create("x", mebibyte, soon());
  client().drop("x", soon());
  EXPECT_THROW(client().get("x", soon()), Error);
  EXPECT_THROW(client().drop("x", soon()), Error);
  EXPECT_NO_THROW(client().create("x", mebibyte, soon()));
}

TEST_F(Segments, ATakenNameIsRefusedAndTheFirstStays) {
  os::Fd first = client().create("x", mebibyte, soon());
  EXPECT_THAT(refusal("x", 2 * mebibyte), HasSubstr("\"x\" exists already"));
  EXPECT_EQ(client().list(soon())[0].bytes, mebibyte);
}

TEST_F(Segments, WhatDoesNotFitIsRefusedWithNumbers) {
  client().create("a", 40 * mebibyte, soon());
  EXPECT_THAT(refusal("b", 25 * mebibyte), AllOf(HasSubstr("25"), HasSubstr("40"), HasSubstr("64")));
  EXPECT_THAT(refusal("b", ~std::uint64_t{0}), HasSubstr("does not fit"));
  EXPECT_THAT(refusal("b", 0), HasSubstr("no bytes"));
  client().drop("a", soon());
  EXPECT_NO_THROW(client().create("b", 64 * mebibyte, soon()));
}

TEST_F(Segments, ThereIsAnEndToTheirNumber) {
  for (std::size_t i = 0; i < shm::most_held_segments; ++i) client().create("s" + std::to_string(i), 4096, soon());
  EXPECT_THAT(refusal("more", 4096), HasSubstr("takes no more"));
  EXPECT_EQ(client().list(soon()).size(), shm::most_held_segments);
}

TEST_F(Segments, NobodyCanChangeTheirSize) {
  os::Fd fd = client().create("x", mebibyte, soon());
  EXPECT_NE(::ftruncate(fd.get(), 4096), 0);
  EXPECT_NE(::ftruncate(fd.get(), 2 * mebibyte), 0);
}

TEST_F(Segments, NamesWithOddCharactersAreRefusedOnBothSides) {
  for (const char* name : {"", "A", "../x", "/x", "x/", "a//b", "a/.b", "a b", "a\n", "-x", "é"}) {
    EXPECT_THROW(client().create(name, 4096, soon()), Error) << name;
    shm::KeeperRequest request;
    request.operation = shm::KeeperOperation::create;
    request.bytes = 4096;
    std::strncpy(request.name, name, sizeof(request.name) - 1);
    EXPECT_EQ(status_of(&request, sizeof(request)), 1) << name;
  }
  EXPECT_THROW(client().create(std::string(64, 'a'), 4096, soon()), Error);
  EXPECT_NO_THROW(client().create(std::string(63, 'a'), 4096, soon()));
  EXPECT_EQ(client().list(soon()).size(), 1u);
}

TEST_F(Segments, ARequestThatIsNotToTheLetterIsRefused) {
  shm::KeeperRequest good;
  good.operation = shm::KeeperOperation::create;
  good.bytes = 4096;
  std::strcpy(good.name, "x");
  auto status = [&](auto change) {
    shm::KeeperRequest bad = good;
    change(bad);
    return status_of(&bad, sizeof(bad));
  };
  EXPECT_EQ(status([](auto& r) { r.magic = 0; }), 1);
  EXPECT_EQ(status([](auto& r) { r.operation = shm::KeeperOperation{0}; }), 1);
  EXPECT_EQ(status([](auto& r) { r.operation = shm::KeeperOperation{77}; }), 1);
  EXPECT_EQ(status([](auto& r) { r.name[40] = 'y'; }), 1);
  EXPECT_EQ(status([](auto& r) { std::memset(r.name, 'a', sizeof(r.name)); }), 1);
  EXPECT_EQ(status([](auto& r) { r.operation = shm::KeeperOperation::get; }), 1);
  EXPECT_EQ(status([](auto& r) { r.operation = shm::KeeperOperation::list; }), 1);
  EXPECT_EQ(status_of(&good, sizeof(good) - 1), 1);
  std::vector<char> longer(100'000, 'x');
  std::memcpy(longer.data(), &good, sizeof(good));
  EXPECT_EQ(status_of(longer.data(), longer.size()), 1);
  EXPECT_TRUE(client().list(soon()).empty());
  EXPECT_EQ(status_of(&good, sizeof(good)), 0);
}

TEST_F(Segments, SilentClientsBlockNobodyHoweverMany) {
  std::vector<os::Fd> silent;
  for (int i = 0; i < 150; ++i) {
    silent.push_back(connect());
    if (i % 25 != 0) continue;
    EXPECT_NO_THROW(client().list(soon()));
  }
  EXPECT_NO_THROW(client().create("x", 4096, soon()));
}

TEST_F(Segments, ASilentClientIsDroppedInTheEnd) {
  os::Fd silent = connect();
  char byte;
  EXPECT_EQ(::recv(silent.get(), &byte, 1, 0), 0);
}

TEST_F(Segments, AClientThatDiesBeforeItsAnswerChangesNothing) {
  client().create("x", 4096, soon());
  for (int i = 0; i < 20; ++i) {
    shm::KeeperRequest request;
    request.operation = shm::KeeperOperation::get;
    std::strcpy(request.name, "x");
    os::Fd socket = connect();
    ::send(socket.get(), &request, sizeof(request), MSG_NOSIGNAL);
  }
  EXPECT_NO_THROW(client().get("x", soon()));
}

TEST_F(Segments, ADroppedSegmentStaysGoodForWhoHasItOpen) {
  os::Fd fd = client().create("x", mebibyte, soon());
  ASSERT_EQ(::pwrite(fd.get(), "y", 1, 0), 1);
  client().drop("x", soon());
  char byte = 0;
  EXPECT_EQ(::pread(fd.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'y');
}

TEST(KeeperClient, WithoutAKeeperIsOneErrorThatSaysWhere) {
  shm::KeeperClient client("/tmp/ganymede-no-such-keeper.sock");
  try {
    client.list(soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no-such-keeper"), HasSubstr("still alive")));
  }
}

}  // namespace
}  // namespace ganymede::keeper
