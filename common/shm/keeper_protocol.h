#pragma once

#include <cstdint>
#include <string_view>

/// What crosses the keeper's socket: fixed binary packets over a SOCK_SEQPACKET UNIX socket, one request and one reply
/// a connection, both in the byte order of the machine that they do not leave.
///
///     request := magic:u32 operation:u32 bytes:u64 name:char[64]          80 bytes, the name padded with zeros
///     reply   := status:u32 count:u32 payload
///     status 0 (done):     payload = count × (bytes:u64 name:char[64]); create and get carry one descriptor
///     status 1 (refused):  payload = count bytes of UTF-8, the reason
///
/// A name is 1 to 63 characters of [a-z0-9._/-], each part between slashes begins with a letter or a digit.
namespace ganymede::shm {

constexpr std::uint32_t keeper_magic = 0x314b4e47;  // "GNK1"
constexpr std::size_t longest_held_name = 63;
constexpr std::size_t most_held_segments = 512;

enum class KeeperOperation : std::uint32_t { create = 1, get = 2, drop = 3, list = 4 };

struct KeeperRequest {
  std::uint32_t magic = keeper_magic;
  KeeperOperation operation{};
  std::uint64_t bytes = 0;  // create: size of the new segment; else 0
  char name[longest_held_name + 1] = {};
};

struct KeeperReply {
  std::uint32_t status = 0;
  std::uint32_t count = 0;
};

struct KeeperListing {
  std::uint64_t bytes = 0;
  char name[longest_held_name + 1] = {};
};

static_assert(sizeof(KeeperRequest) == 80 && sizeof(KeeperReply) == 8 && sizeof(KeeperListing) == 72);

/// Whether a segment may be held under this name.
bool valid_held_name(std::string_view name);

}  // namespace ganymede::shm
