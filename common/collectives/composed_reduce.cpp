#include <algorithm>
#include <array>

#include "common/collectives/composed_operations.h"
#include "common/collectives/sums.h"

namespace ganymede::collectives {
namespace {

// Elements: below that, messages cost more than what they carry.
constexpr std::size_t smallest_piece = 4096;

Runs run_of(Range elements, std::size_t width) {
  return elements.empty() ? Runs{} : Runs{{elements.begin * width, elements.size() * width}};
}

}  // namespace

Range piece_of(Range whole, std::size_t piece_size, std::size_t index) {
  std::size_t begin = std::min(whole.begin + index * piece_size, whole.end);
  return {begin, std::min(begin + piece_size, whole.end)};
}

std::size_t pieces_of_longest(std::span<const std::int64_t> cut, std::size_t piece_size) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i + 1 < cut.size(); ++i)
    longest = std::max(longest, part_of(cut, static_cast<int>(i)).size());
  return longest == 0 ? 0 : (longest + piece_size - 1) / piece_size;
}

namespace {

/// One sum at the receiver, piece by piece; the next piece crosses between nodes while one is summed.
class ReceiverSum {
 public:
  ReceiverSum(Carrier& carrier, const std::byte* values, Element element, std::span<const std::int64_t> cut,
              std::span<float> sum, std::size_t scratch_bytes)
      : carrier_(carrier),
        map_(carrier.map),
        values_(values),
        element_(element),
        width_(element_bytes(element)),
        cut_(cut),
        sum_(sum) {
    std::size_t foreign = static_cast<std::size_t>(map_.size() - map_.local_members());
    piece_ = std::max(scratch_bytes / (3 * width_ * static_cast<std::size_t>(map_.size())), smallest_piece);
    if (map_.nodes() == 1 && carrier.reads_in_place()) piece_ = static_cast<std::size_t>(cut.back() - cut.front()) + 1;
    piece_ = std::min(piece_, static_cast<std::size_t>(cut.back() - cut.front()) + 1);
    for (auto& buffer : scratch_) buffer.resize(foreign * piece_ * width_);
  }

  void run() {
    std::size_t pieces = pieces_of_longest(cut_, piece_);
    std::array<PendingPtr, 2> crossing;
    for (std::size_t k = 0; k <= pieces; ++k) {
      if (k < pieces) crossing[k % 2] = cross(k);
      if (k == 0) continue;
      carrier_.wait(crossing[(k - 1) % 2]);
      sum(k - 1);
    }
  }

 private:
  std::byte* received(std::size_t k, int foreign) {
    return scratch_[k % 2].data() + static_cast<std::size_t>(foreign) * piece_ * width_;
  }

  PendingPtr cross(std::size_t k) {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    int foreign = 0;
    std::size_t own = piece_of(part_of(cut_, map_.member()), piece_, k).size();
    for (int member = 0; member < map_.size(); ++member) {
      if (map_.local(member)) continue;
      Range theirs = piece_of(part_of(cut_, member), piece_, k);
      sends.push_back({member, {values_ + theirs.begin * width_, theirs.size() * width_}});
      receives.push_back({member, {received(k, foreign++), own * width_}});
    }
    return carrier_.between(sends, receives);
  }

  void sum(std::size_t k) {
    Range part = part_of(cut_, map_.member()), own = piece_of(part, piece_, k);
    std::vector<Outgoing> sends;
    std::vector<Term> terms;
    int foreign = 0;
    for (int member = 0; member < map_.size(); ++member) {
      if (!map_.local(member)) {
        terms.push_back({-1, received(k, foreign++), run_of({0, own.size()}, width_)});
        continue;
      }
      sends.push_back({member, values_, run_of(piece_of(part_of(cut_, member), piece_, k), width_)});
      terms.push_back({member, values_, run_of(own, width_)});
    }
    carrier_.sum_inside(std::move(sends), std::move(terms), element_, sum_.subspan(own.begin - part.begin, own.size()));
  }

  Carrier& carrier_;
  const NodeMap& map_;
  const std::byte* values_;
  Element element_;
  std::size_t width_;
  std::span<const std::int64_t> cut_;
  std::span<float> sum_;
  std::size_t piece_ = 0;
  std::array<std::vector<std::byte>, 2> scratch_;
};

/// A reduce_scatter that crosses once a node. In round k all nodes work on piece k of every member's part, so that
/// nobody waits for a message of a later round.
class NodeFirstSum {
 public:
  NodeFirstSum(Carrier& carrier, std::span<const float> values, std::span<const std::int64_t> cut, std::span<float> sum,
               std::size_t scratch_bytes)
      : carrier_(carrier), map_(carrier.map), values_(values), cut_(cut), sum_(sum) {
    int most = 0, least = map_.size();
    for (int node = 0; node < map_.nodes(); ++node) {
      most = std::max(most, map_.members(node));
      least = std::min(least, map_.members(node));
    }
    // Of each node's parts a share meets so many at most; then what comes from each node, all twice, in every member.
    int pieces = map_.nodes() * ((most + least - 1) / least + 2);
    piece_ = scratch_bytes / (sizeof(float) * 2 * static_cast<std::size_t>(pieces * (most + 1)));
    piece_ = std::max(piece_, smallest_piece);
    piece_ = std::min(piece_, static_cast<std::size_t>(cut.back() - cut.front()) + 1);
    for (auto& buffer : received_) buffer.resize(static_cast<std::size_t>(map_.nodes()) * piece_);
  }

  void run() {
    std::size_t rounds = pieces_of_longest(cut_, piece_);
    std::array<PendingPtr, 2> crossing;
    for (std::size_t k = 0; k <= rounds; ++k) {
      if (k < rounds) {
        sum_inside(k);
        crossing[k % 2] = cross(k);
      }
      if (k == 0) continue;
      carrier_.wait(crossing[(k - 1) % 2]);
      sum_over_nodes(k - 1);
    }
  }

 private:
  /// What a member of this node sums in a round of a member's part.
  Range duty(int local, int owner, std::size_t k) const {
    Range piece = piece_of(part_of(cut_, owner), piece_, k);
    if (map_.local(owner)) return owner == local ? piece : Range{};
    Range node_part = map_.part_of_node(cut_, map_.node_of(owner));
    return overlap(piece, share(node_part, map_.local_members(), local - map_.local_first()));
  }

  Runs duties(int local, std::size_t k) const {
    Runs runs;
    for (int owner = 0; owner < map_.size(); ++owner) {
      Range range = duty(local, owner, k);
      if (!range.empty()) runs.push_back({range.begin * sizeof(float), range.size() * sizeof(float)});
    }
    return runs;
  }

  void sum_inside(std::size_t k) {
    auto* values = reinterpret_cast<const std::byte*>(values_.data());
    std::vector<Outgoing> sends;
    std::vector<Term> terms;
    Runs own = duties(map_.member(), k);
    for (int local = map_.local_first(); local < map_.local_first() + map_.local_members(); ++local) {
      sends.push_back({local, values, duties(local, k)});
      terms.push_back({local, values, own});
    }
    summed_[k % 2].resize(total_bytes(own) / sizeof(float));
    carrier_.sum_inside(std::move(sends), std::move(terms), Element::fp32, summed_[k % 2]);
  }

  PendingPtr cross(std::size_t k) {
    std::vector<Send> sends;
    std::size_t at = 0;
    for (int owner = 0; owner < map_.size(); ++owner) {
      std::size_t count = duty(map_.member(), owner, k).size();
      if (owner == map_.member()) own_at_[k % 2] = at;
      if (!map_.local(owner)) sends.push_back({owner, std::as_bytes(std::span(summed_[k % 2]).subspan(at, count))});
      at += count;
    }
    std::vector<Receive> receives;
    Range own = piece_of(part_of(cut_, map_.member()), piece_, k), node_part = map_.part_of_node(cut_, map_.node());
    for (int sender = 0; sender < map_.size(); ++sender) {
      if (map_.local(sender)) continue;
      int node = map_.node_of(sender);
      Range part = overlap(own, share(node_part, map_.members(node), sender - map_.first(node)));
      std::size_t within = part.empty() ? 0 : part.begin - own.begin;
      std::span<float> to = std::span(received_[k % 2]).subspan(static_cast<std::size_t>(node) * piece_ + within);
      receives.push_back({sender, std::as_writable_bytes(to.first(part.size()))});
    }
    return carrier_.between(sends, receives);
  }

  void sum_over_nodes(std::size_t k) {
    Range part = part_of(cut_, map_.member()), own = piece_of(part, piece_, k);
    if (own.empty()) return;
    std::vector<const std::byte*> terms;
    for (int node = 0; node < map_.nodes(); ++node) {
      const float* term = node == map_.node() ? summed_[k % 2].data() + own_at_[k % 2]
                                              : received_[k % 2].data() + static_cast<std::size_t>(node) * piece_;
      terms.push_back(reinterpret_cast<const std::byte*>(term));
    }
    sum_in_order(Element::fp32, terms, own.size(), sum_.data() + (own.begin - part.begin));
  }

  Carrier& carrier_;
  const NodeMap& map_;
  std::span<const float> values_;
  std::span<const std::int64_t> cut_;
  std::span<float> sum_;
  std::size_t piece_ = 0;
  std::array<std::vector<float>, 2> summed_, received_;  // of this node: for others and itself; of each other node
  std::array<std::size_t, 2> own_at_{};
};

}  // namespace

void sum_at_receiver(Carrier& carrier, const std::byte* values, Element element, std::span<const std::int64_t> cut,
                     std::span<float> sum, std::size_t scratch_bytes) {
  ReceiverSum(carrier, values, element, cut, sum, scratch_bytes).run();
}

void sum_node_first(Carrier& carrier, std::span<const float> values, std::span<const std::int64_t> cut,
                    std::span<float> sum, std::size_t scratch_bytes) {
  const NodeMap& map = carrier.map;
  if (map.nodes() == 1 || map.nodes() == map.size()) {  // both orders are the rank order
    return sum_at_receiver(carrier, reinterpret_cast<const std::byte*>(values.data()), Element::fp32, cut, sum,
                           scratch_bytes);
  }
  NodeFirstSum(carrier, values, cut, sum, scratch_bytes).run();
}

}  // namespace ganymede::collectives
