#include "common/collectives/shm/port.h"

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "common/os/futex.h"

namespace ganymede::collectives {
namespace {

constexpr std::size_t least_staging = 4096;  // bytes for each member

ChannelHead* head_of(std::span<std::byte> channel) { return reinterpret_cast<ChannelHead*>(channel.data()); }

}  // namespace

void OwnChannel::ring() const {
  head->bell.fetch_add(1, std::memory_order_release);
  os::wake(head->bell);
}

void OwnChannel::open() const {
  for (int i = 0; i < members; ++i) {
    lines[i].filled.store(tagged(generation, 0), std::memory_order_relaxed);
    lines[i].taken.store(tagged(generation, 0), std::memory_order_relaxed);
  }
  head->generation.store(generation, std::memory_order_release);
}

void OwnChannel::leave() const {
  head->left.store(generation, std::memory_order_release);
  ring();
}

Port::Port(Spec spec) : spec_(std::move(spec)), taken_(static_cast<std::size_t>(spec_.channels), false) {
  const Region& region = spec_.regions.at(spec_.channels_region);
  std::span<std::byte> memory = spec_.channels_memory;
  GANYMEDE_CHECK(memory.data() >= region.base && memory.data() + memory.size() <= region.base + region.bytes &&
                     (memory.data() - region.base) % 64 == 0,
                 "the channels do not lie in region \"{}\"", region.name);
  for (int index = 0; index < spec_.channels; ++index) {
    if (memory_of(index).size() < sizeof(ChannelHead) + sizeof(PeerLine) + least_staging) {
      fail("Region \"{}\" has {} bytes for {} channels of collectives, which is too little.", region.name,
           memory.size(), spec_.channels);
    }
    OwnChannel left;
    left.head = head_of(memory_of(index));
    left.generation = left.head->generation.load(std::memory_order_relaxed);
    left.leave();
  }
}

std::span<std::byte> Port::memory_of(int index) const {
  std::size_t each = spec_.channels_memory.size() / static_cast<std::size_t>(spec_.channels) / 64 * 64;
  return spec_.channels_memory.subspan(static_cast<std::size_t>(index) * each, each);
}

std::optional<Port::Place> Port::locate(const std::byte* memory, std::size_t bytes) const {
  for (std::size_t i = 0; i < spec_.regions.size(); ++i) {
    const Region& region = spec_.regions[i];
    if (memory < region.base || memory >= region.base + region.bytes) continue;
    auto offset = static_cast<std::size_t>(memory - region.base);
    if (bytes <= region.bytes - offset) return Place{i, offset};
  }
  return std::nullopt;
}

OwnChannel Port::take(int members) {
  std::lock_guard lock(mutex_);
  auto free = std::find(taken_.begin(), taken_.end(), false);
  if (free == taken_.end()) {
    fail("All {} channels of collectives in shared memory are in use: end a communicator first.", spec_.channels);
  }
  OwnChannel channel;
  channel.index = static_cast<int>(free - taken_.begin());
  std::span<std::byte> memory = memory_of(channel.index);
  auto count = static_cast<std::size_t>(members);
  std::size_t table = sizeof(ChannelHead) + count * sizeof(PeerLine);
  if (memory.size() < table + count * least_staging) {
    fail("A channel of {} bytes is too small for the {} ranks of a node.", memory.size(), members);
  }
  channel.head = head_of(memory);
  channel.lines = reinterpret_cast<PeerLine*>(memory.data() + sizeof(ChannelHead));
  channel.staging = memory.subspan(table);
  channel.head_offset = static_cast<std::size_t>(memory.data() - spec_.regions[spec_.channels_region].base);
  channel.staging_offset = channel.head_offset + table;
  channel.members = members;
  channel.generation = std::max(channel.head->generation.load(std::memory_order_relaxed),
                                channel.head->left.load(std::memory_order_relaxed)) +
                       1;
  *free = true;
  return channel;
}

void Port::give_back(const OwnChannel& channel) {
  channel.leave();
  std::lock_guard lock(mutex_);
  taken_[static_cast<std::size_t>(channel.index)] = false;
}

}  // namespace ganymede::collectives
