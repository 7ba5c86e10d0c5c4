#include <algorithm>
#include <cstring>

#include "common/collectives/composed_operations.h"

namespace ganymede::collectives {
namespace {

Runs one_run(std::size_t offset, std::size_t bytes) { return bytes == 0 ? Runs{} : Runs{{offset, bytes}}; }

Range bytes_of(std::span<const std::size_t> offsets, int member) { return {offsets[member], offsets[member + 1]}; }

/// The part of `node` that the member at a place of a node with `members` fetches for it.
Range fetched(const NodeMap& map, std::span<const std::size_t> offsets, int node, int members, int place) {
  return share(map.part_of_node(offsets, node), members, place);
}

/// This member's part goes to the members of one node, each a share of it; of another node's parts its share comes.
PendingPtr cross(Carrier& carrier, ConstBytes mine, Bytes all, std::span<const std::size_t> offsets, int to, int from) {
  const NodeMap& map = carrier.map;
  std::vector<Send> sends;
  Range own = bytes_of(offsets, map.member());
  for (int place = 0; place < map.members(to); ++place) {
    Range wanted = overlap(own, fetched(map, offsets, map.node(), map.members(to), place));
    sends.push_back(
        {map.first(to) + place, mine.subspan(wanted.empty() ? 0 : wanted.begin - own.begin, wanted.size())});
  }
  std::vector<Receive> receives;
  Range mine_of_it = fetched(map, offsets, from, map.local_members(), map.place());
  for (int member = map.first(from); member < map.first(from) + map.members(from); ++member) {
    Range part = overlap(bytes_of(offsets, member), mine_of_it);
    receives.push_back({member, all.subspan(part.begin, part.size())});
  }
  return carrier.between(sends, receives);
}

/// The members of this node pass on what each has: `held(member)` is where it lies in `all`.
template <class Held>
void pass_on(Carrier& carrier, const std::byte* base, Bytes all, Held held) {
  const NodeMap& map = carrier.map;
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  Range own = held(map.member());
  for (int step = 1; step < map.local_members(); ++step) {
    // Each begins with its right neighbour, so that they do not all read from the same one.
    int peer = map.local_first() + (map.place() + step) % map.local_members();
    Range theirs = held(peer);
    sends.push_back({peer, base, one_run(0, own.size())});
    receives.push_back({peer, one_run(0, theirs.size()), all.data() + theirs.begin});
  }
  carrier.copy_inside(std::move(sends), std::move(receives));
}

}  // namespace

void gather_by_topology(Carrier& carrier, ConstBytes mine, Bytes all, std::span<const std::size_t> offsets) {
  const NodeMap& map = carrier.map;
  std::vector<PendingPtr> crossing;
  for (int distance = 1; distance < map.nodes(); ++distance) {
    int to = (map.node() - distance + map.nodes()) % map.nodes(), from = (map.node() + distance) % map.nodes();
    crossing.push_back(cross(carrier, mine, all, offsets, to, from));
  }
  Range own = bytes_of(offsets, map.member());
  if (all.data() + own.begin != mine.data() && !mine.empty()) {
    std::memcpy(all.data() + own.begin, mine.data(), mine.size());
  }
  pass_on(carrier, mine.data(), all, [&](int member) { return bytes_of(offsets, member); });
  for (int distance = 1; distance < map.nodes(); ++distance) {
    carrier.wait(crossing[distance - 1]);
    int from = (map.node() + distance) % map.nodes();
    auto held = [&](int member) {
      return fetched(map, offsets, from, map.local_members(), member - map.local_first());
    };
    pass_on(carrier, all.data() + held(map.member()).begin, all, held);
  }
}

void exchange_all(Carrier& carrier, ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                  std::span<const std::size_t> receive_offsets) {
  const NodeMap& map = carrier.map;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<Outgoing> sends_inside;
  std::vector<Incoming> receives_inside;
  for (int step = 1; step < map.size(); ++step) {
    int to = (map.member() + step) % map.size(), from = (map.member() - step + map.size()) % map.size();
    Range out = bytes_of(send_offsets, to), in = bytes_of(receive_offsets, from);
    if (map.local(to)) {
      sends_inside.push_back({to, send.data(), one_run(out.begin, out.size())});
    } else {
      sends.push_back({to, send.subspan(out.begin, out.size())});
    }
    if (map.local(from)) {
      receives_inside.push_back({from, one_run(0, in.size()), receive.data() + in.begin});
    } else {
      receives.push_back({from, receive.subspan(in.begin, in.size())});
    }
  }
  PendingPtr crossing = carrier.between(sends, receives);
  Range kept = bytes_of(send_offsets, map.member()), own = bytes_of(receive_offsets, map.member());
  if (!own.empty() && receive.data() + own.begin != send.data() + kept.begin) {
    std::memcpy(receive.data() + own.begin, send.data() + kept.begin, own.size());
  }
  carrier.copy_inside(std::move(sends_inside), std::move(receives_inside));
  carrier.wait(crossing);
}

void sum_integers(Carrier& carrier, std::span<std::int64_t> values, std::size_t scratch_bytes) {
  auto members = static_cast<std::size_t>(carrier.map.size());
  std::size_t piece = std::max<std::size_t>(scratch_bytes / sizeof(std::int64_t) / members, 1024);
  std::vector<std::int64_t> all(std::min(piece, values.size()) * members);
  for (std::size_t begin = 0; begin < values.size(); begin += piece) {
    std::span<std::int64_t> part = values.subspan(begin, std::min(piece, values.size() - begin));
    std::vector<std::size_t> offsets;
    for (std::size_t member = 0; member <= members; ++member) offsets.push_back(member * part.size_bytes());
    gather_by_topology(carrier, std::as_bytes(part), std::as_writable_bytes(std::span(all)), offsets);
    std::fill(part.begin(), part.end(), 0);
    for (std::size_t i = 0; i < members * part.size(); ++i) part[i % part.size()] += all[i];
  }
}

}  // namespace ganymede::collectives
