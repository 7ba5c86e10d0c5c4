#include "common/collectives/traffic_forms.h"

namespace ganymede::collectives {
namespace {

/// Of what belongs to other nodes, the share of one place of this node, in units of `cut`.
template <class Offset>
std::uint64_t foreign_share(const NodeMap& map, std::span<const Offset> cut, int place) {
  std::uint64_t total = 0;
  for (int node = 0; node < map.nodes(); ++node) {
    if (node != map.node()) total += share(map.part_of_node(cut, node), map.local_members(), place).size();
  }
  return total;
}

}  // namespace

SentBytes all_gather_bytes(const NodeMap& map, std::span<const std::size_t> offsets) {
  std::uint64_t own = offsets[map.member() + 1] - offsets[map.member()];
  auto peers = static_cast<std::uint64_t>(map.local_members() - 1);
  return {(own + foreign_share(map, offsets, map.place())) * peers, own * static_cast<std::uint64_t>(map.nodes() - 1)};
}

SentBytes all_to_all_bytes(const NodeMap& map, std::span<const std::size_t> sent) {
  SentBytes bytes;
  for (int member = 0; member < map.size(); ++member) {
    if (member == map.member()) continue;
    (map.local(member) ? bytes.inside_node : bytes.between_nodes) += sent[member];
  }
  return bytes;
}

SentBytes all_to_all_sum_bytes(const NodeMap& map, std::span<const std::int64_t> cut, std::size_t element_bytes) {
  std::vector<std::size_t> sent;
  for (int member = 0; member < map.size(); ++member) {
    sent.push_back(static_cast<std::size_t>(cut[member + 1] - cut[member]) * element_bytes);
  }
  return all_to_all_bytes(map, sent);
}

SentBytes reduce_scatter_bytes(const NodeMap& map, std::span<const std::int64_t> cut) {
  SentBytes bytes;
  for (int place = 0; place < map.local_members(); ++place) {
    int member = map.local_first() + place;
    if (member == map.member()) {
      bytes.between_nodes += foreign_share(map, cut, place) * sizeof(float);
    } else {
      auto own = static_cast<std::uint64_t>(cut[member + 1] - cut[member]);
      bytes.inside_node += (own + foreign_share(map, cut, place)) * sizeof(float);
    }
  }
  return bytes;
}

}  // namespace ganymede::collectives
