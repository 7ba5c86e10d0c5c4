#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/collectives/topology.h"

/// The least bytes that leave one member in each operation, as closed forms of the topology: what the counters of
/// `Communicator::traffic` must show, and what `ganymede plan` can print without running anything.
namespace ganymede::collectives {

struct SentBytes {
  std::uint64_t inside_node = 0;
  std::uint64_t between_nodes = 0;
  bool operator==(const SentBytes&) const = default;
};

/// Every part crosses once into each other node; there the members have one share each and pass it on.
SentBytes all_gather_bytes(const NodeMap& map, std::span<const std::size_t> offsets);

/// `sent`: bytes to each member.
SentBytes all_to_all_bytes(const NodeMap& map, std::span<const std::size_t> sent);

/// `cut` in elements of `element_bytes`: every other member's part goes to it.
SentBytes all_to_all_sum_bytes(const NodeMap& map, std::span<const std::int64_t> cut, std::size_t element_bytes);

/// fp32: a node's members sum one share each of what belongs to other nodes, and only these sums cross.
SentBytes reduce_scatter_bytes(const NodeMap& map, std::span<const std::int64_t> cut);

}  // namespace ganymede::collectives
