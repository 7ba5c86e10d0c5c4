#include "common/collectives/factory/factory.h"

#include <utility>

#include "common/base/error.h"
#include "common/collectives/composed.h"
#include "common/collectives/gloo/gloo_backend.h"
#include "common/collectives/pairwise_link.h"
#include "common/collectives/shm/shm_link.h"
#include "common/collectives/single.h"
#include "common/collectives/topology.h"

namespace ganymede::collectives {
namespace {

bool uses_shm(const Group& group, const NodeMap& map, const Surroundings& surroundings) {
  if (surroundings.backend == Backend::gloo) return false;
  if (surroundings.backend == Backend::automatic) return surroundings.port != nullptr;
  if (map.nodes() > 1) {
    fail(
        "collectives.backend = \"shm\" reaches one node only, but the group \"{}\" spans {}: set it to \"auto\", which "
        "uses gloo between nodes.",
        group.name, map.nodes());
  }
  if (surroundings.port == nullptr) {
    fail("collectives.backend = \"shm\" needs memory that the ranks publish, and there is none: set it to \"gloo\".");
  }
  return true;
}

/// The members of this rank's node.
Group inside_of(const Group& group, const NodeMap& map) {
  Group inside = group;
  auto first = group.ranks.begin() + map.local_first();
  inside.ranks.assign(first, first + map.local_members());
  inside.nodes.clear();
  if (map.nodes() > 1) inside.name += fmt::format(".node{}", group.nodes[static_cast<std::size_t>(map.member())]);
  return inside;
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(Group group, const Surroundings& surroundings) {
  group.nodes.clear();
  int place = 0, size = static_cast<int>(group.ranks.size());
  for (int i = 0; i < size; ++i) {
    if (group.ranks[i] == group.rank) place = i;
    group.nodes.push_back(surroundings.ranks_per_node > 0 ? group.ranks[i] / surroundings.ranks_per_node : 0);
  }
  if (size == 1) return make_single(group);
  NodeMap map(group.nodes, size, place);
  bool shm = uses_shm(group, map, surroundings);
  Links links;
  if (map.nodes() > 1) links.between = make_gloo(group, surroundings.store, surroundings.interface);
  if (map.local_members() > 1) {
    Group inside = inside_of(group, map);
    links.inside = shm ? make_shm_link(*surroundings.port, inside, *surroundings.store)
                       : make_pairwise_link(make_gloo(inside, surroundings.store, surroundings.interface));
  }
  return make_composed(group, std::move(links), surroundings.scratch_bytes);
}

}  // namespace ganymede::collectives
