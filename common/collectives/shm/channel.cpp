#include "common/collectives/shm/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/base/barrier.h"
#include "common/base/error.h"

namespace ganymede::collectives {
namespace {

/// What a member tells the others when a communicator is formed.
struct Card {
  std::uint64_t region = 0, offset = 0;  // of its channel
  std::uint64_t generation = 0;
  std::uint64_t members = 0;
  ProcessIdentity process;
};

}  // namespace

Channel::Channel(Port& port, const Group& group, Store& store)
    : port_(port),
      name_(group.name),
      own_(port.take(static_cast<int>(group.ranks.size()))),
      sent_(group.ranks.size(), 0),
      received_(group.ranks.size(), 0) {
  try {
    place_ = static_cast<int>(std::find(group.ranks.begin(), group.ranks.end(), group.rank) - group.ranks.begin());
    Card card{port.channels_region(), own_.head_offset, own_.generation, group.ranks.size(), this_process()};
    store.set(key(group.rank), std::as_bytes(std::span(&card, 1)));
    Deadline deadline = Deadline::after_seconds(group.timeout_seconds);
    for (int peer = 0; peer < static_cast<int>(group.ranks.size()); ++peer) {
      if (peer == place_) {
        peers_.push_back({group.rank, own_.generation, own_.head, &own_.lines[place_]});
      } else {
        peers_.push_back(find(group.ranks[peer], store, deadline, peer));
      }
    }
    // Only now: a peer may still have looked at what this rank counted for it in the communicator before.
    own_.open();
  } catch (const CollectiveError& error) {
    port_.give_back(own_);
    throw CollectiveError(fmt::format("group {}: its members did not come together: {}", name_, error.what()));
  } catch (...) {
    port_.give_back(own_);
    throw;
  }
}

Channel::~Channel() { port_.give_back(own_); }

std::string Channel::key(int rank) const { return fmt::format("shm/{}/{}", name_, rank); }

Channel::Peer Channel::find(int rank, Store& store, Deadline deadline, int peer) {
  std::vector<std::byte> bytes = store.get(key(rank), deadline);
  Card card;
  if (bytes.size() != sizeof card) throw CollectiveError(fmt::format("rank {} is of another version", rank));
  std::memcpy(&card, bytes.data(), sizeof card);
  std::span<const std::byte> region = port_.peer(rank, card.region);
  std::size_t table = sizeof(ChannelHead) + sent_.size() * sizeof(PeerLine);
  if (card.members != sent_.size() || card.offset % 64 != 0 || card.offset > region.size() ||
      table > region.size() - card.offset) {
    throw CollectiveError(
        fmt::format("rank {} forms a group of {} members there, not of {}", rank, card.members, sent_.size()));
  }
  liveness_.watch(peer, card.process);
  const std::byte* head = region.data() + card.offset;
  auto* lines = reinterpret_cast<const PeerLine*>(head + sizeof(ChannelHead));
  return {rank, card.generation, reinterpret_cast<const ChannelHead*>(head), lines + place_};
}

void Channel::count_filled(int peer) {
  own_.lines[peer].filled.store(tagged(own_.generation, ++sent_[peer]), std::memory_order_release);
}

void Channel::count_taken(int peer) {
  // A peer first leaves, then reuses its memory: if it has not left by now, what was read before this line is right.
  full_barrier();
  const Peer& from = peers_[peer];
  if (from.head->left.load(std::memory_order_acquire) >= from.generation) {
    throw CollectiveError(fmt::format("group {}: rank {} has left it", name_, from.rank));
  }
  own_.lines[peer].taken.store(tagged(own_.generation, ++received_[peer]), std::memory_order_release);
}

bool Channel::gone(int peer) const {
  const Peer& from = peers_[peer];
  return from.head->left.load(std::memory_order_acquire) >= from.generation || liveness_.dead(peer);
}

std::vector<Bell> Channel::bells() const {
  std::vector<Bell> bells;
  for (const Peer& peer : peers_) bells.push_back({&peer.head->bell, peer.head->bell.load(std::memory_order_acquire)});
  return bells;
}

}  // namespace ganymede::collectives
