#pragma once

#include <cstdint>
#include <span>

#include "common/collectives/carrier.h"

/// The collectives of a composed communicator, each run to its end by the calling thread. They throw CollectiveError.
namespace ganymede::collectives {

void gather_by_topology(Carrier& carrier, ConstBytes mine, Bytes all, std::span<const std::size_t> offsets);

void exchange_all(Carrier& carrier, ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                  std::span<const std::size_t> receive_offsets);

void sum_integers(Carrier& carrier, std::span<std::int64_t> values, std::size_t scratch_bytes);

/// In rank order.
void sum_at_receiver(Carrier& carrier, const std::byte* values, Element element, std::span<const std::int64_t> cut,
                     std::span<float> sum, std::size_t scratch_bytes);

/// First within nodes, then over nodes.
void sum_node_first(Carrier& carrier, std::span<const float> values, std::span<const std::int64_t> cut,
                    std::span<float> sum, std::size_t scratch_bytes);

/// Part `index` of a range that is cut into pieces of a size; empty beyond its end.
Range piece_of(Range whole, std::size_t piece_size, std::size_t index);
/// How many pieces the longest part of any member has.
std::size_t pieces_of_longest(std::span<const std::int64_t> cut, std::size_t piece_size);
/// The elements of one member.
inline Range part_of(std::span<const std::int64_t> cut, int member) {
  return {static_cast<std::size_t>(cut[member]), static_cast<std::size_t>(cut[member + 1])};
}

}  // namespace ganymede::collectives
