#pragma once

#include <cstddef>
#include <span>
#include <vector>

/// Where the members of a group live, and how a node's members share what crosses between nodes.
namespace ganymede::collectives {

/// Part of something that is counted from 0.
struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
};
Range overlap(Range a, Range b);  // empty when they do not meet

/// Share `index` of `parts` nearly equal ones: sizes differ by one at most, and shares in order make the whole.
Range share(Range whole, int parts, int index);

/// The members of a group by node. Members of one node are neighbours in rank order.
class NodeMap {
 public:
  /// `nodes`: of each member, never descending (else the process ends); empty: all `size` members are on one.
  NodeMap(const std::vector<int>& nodes, int size, int member);

  int nodes() const { return static_cast<int>(first_.size()) - 1; }
  int first(int node) const { return first_[node]; }
  int members(int node) const { return first_[node + 1] - first_[node]; }
  int node_of(int member) const { return node_of_[member]; }
  bool local(int member) const { return node_of_[member] == node_; }
  int node() const { return node_; }                     // this member's, counted within the group
  int place() const { return member_ - first_[node_]; }  // in its node
  int local_members() const { return members(node_); }
  int local_first() const { return first_[node_]; }
  int size() const { return static_cast<int>(node_of_.size()); }
  int member() const { return member_; }

  /// The elements of all members of a node; `cut` has size() + 1 boundaries.
  template <class Offset>
  Range part_of_node(std::span<const Offset> cut, int node) const {
    return {static_cast<std::size_t>(cut[first_[node]]), static_cast<std::size_t>(cut[first_[node + 1]])};
  }

 private:
  int member_;
  int node_;
  std::vector<int> first_;  // member of each node, and size() at the end
  std::vector<int> node_of_;
};

}  // namespace ganymede::collectives
