#include "common/collectives/topology.h"

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::collectives {

Range overlap(Range a, Range b) {
  std::size_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
  return begin < end ? Range{begin, end} : Range{};
}

Range share(Range whole, int parts, int index) {
  auto boundary = [&](int i) {
    auto product = static_cast<unsigned __int128>(whole.size()) * static_cast<unsigned>(i);
    return whole.begin + static_cast<std::size_t>(product / static_cast<unsigned>(parts));
  };
  return {boundary(index), boundary(index + 1)};
}

NodeMap::NodeMap(const std::vector<int>& nodes, int size, int member) : member_(member), node_of_(size, 0) {
  GANYMEDE_CHECK(nodes.empty() || static_cast<int>(nodes.size()) == size, "{} nodes are given for {} members",
                 nodes.size(), size);
  GANYMEDE_CHECK(std::is_sorted(nodes.begin(), nodes.end()), "the members of a node are no neighbours in rank order");
  first_.push_back(0);
  for (int i = 1; i < size; ++i) {
    if (!nodes.empty() && nodes[i] != nodes[i - 1]) first_.push_back(i);
    node_of_[i] = static_cast<int>(first_.size()) - 1;
  }
  node_ = node_of_[member];
  first_.push_back(size);
}

}  // namespace ganymede::collectives
