#include "common/collectives/pairwise.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/error.h"
#include "common/collectives/arguments.h"
#include "common/collectives/sums.h"

namespace ganymede::collectives {
namespace {

/// Completes like `inner`, then runs `finish` once; owns what the collective needs until then.
class Finishing : public Pending {
 public:
  Finishing(PendingPtr inner, std::function<void()> finish) : finish_(std::move(finish)), inner_(std::move(inner)) {}
  void wait(Deadline deadline) override {
    inner_->wait(deadline);
    if (finish_) std::exchange(finish_, nullptr)();
  }

 private:
  std::function<void()> finish_;  // owns buffers that `inner_` writes to, so it goes last
  PendingPtr inner_;
};

ConstBytes part(ConstBytes bytes, std::span<const std::size_t> offsets, int member) {
  return bytes.subspan(offsets[member], offsets[member + 1] - offsets[member]);
}
Bytes part(Bytes bytes, std::span<const std::size_t> offsets, int member) {
  return bytes.subspan(offsets[member], offsets[member + 1] - offsets[member]);
}

int place_in(const Group& group) {
  auto mine = std::find(group.ranks.begin(), group.ranks.end(), group.rank);
  GANYMEDE_CHECK(mine != group.ranks.end(), "rank {} is not in group {}", group.rank, group.name);
  return static_cast<int>(mine - group.ranks.begin());
}

}  // namespace

PairwiseCommunicator::PairwiseCommunicator(Group group)
    : group_(std::move(group)), map_(group_.nodes, static_cast<int>(group_.ranks.size()), place_in(group_)) {}

PendingPtr PairwiseCommunicator::exchange(const char* operation, const Cargo& cargo, const std::vector<Send>& sends,
                                          const std::vector<Receive>& receives) {
  std::vector<Send> real_sends;
  std::vector<Receive> real_receives;
  std::uint64_t inside = 0, between = 0;
  for (const Send& send : sends) {
    if (send.member == rank() || send.bytes.empty()) continue;
    real_sends.push_back(send);
    (map_.local(send.member) ? inside : between) += send.bytes.size();
  }
  for (const Receive& receive : receives) {
    if (receive.member != rank() && !receive.bytes.empty()) real_receives.push_back(receive);
  }
  counter_.add(operation, cargo, inside, between);
  return start(real_sends, real_receives);
}

PendingPtr PairwiseCommunicator::all_gather(ConstBytes mine, Bytes all, std::span<const std::size_t> offsets,
                                            const Cargo& cargo) {
  check_gather(mine, all, offsets, size(), rank());
  Bytes own = part(all, offsets, rank());
  if (own.data() != mine.data() && !own.empty()) std::memcpy(own.data(), mine.data(), mine.size());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  // Each starts with its right neighbour, so that the members do not all send to the same one.
  for (int step = 1; step < size(); ++step) {
    sends.push_back({(rank() + step) % size(), mine});
    int from = (rank() - step + size()) % size();
    receives.push_back({from, part(all, offsets, from)});
  }
  return exchange("all_gather", cargo, sends, receives);
}

PendingPtr PairwiseCommunicator::all_to_all(ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                                            std::span<const std::size_t> receive_offsets, const Cargo& cargo) {
  check_exchange(send, send_offsets, receive, receive_offsets, size(), rank());
  ConstBytes kept = part(send, send_offsets, rank());
  Bytes own = part(receive, receive_offsets, rank());
  if (own.data() != kept.data() && !own.empty()) std::memcpy(own.data(), kept.data(), kept.size());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int step = 1; step < size(); ++step) {
    int to = (rank() + step) % size();
    int from = (rank() - step + size()) % size();
    sends.push_back({to, part(send, send_offsets, to)});
    receives.push_back({from, part(receive, receive_offsets, from)});
  }
  return exchange("all_to_all", cargo, sends, receives);
}

PendingPtr PairwiseCommunicator::all_reduce(std::span<std::int64_t> values) {
  struct Buffers {
    std::vector<std::int64_t> mine, theirs;
  };
  auto buffers = std::make_shared<Buffers>();
  std::size_t count = values.size();
  buffers->mine.assign(values.begin(), values.end());
  buffers->theirs.resize(count * size());
  ConstBytes mine = std::as_bytes(std::span(buffers->mine));
  Bytes theirs = std::as_writable_bytes(std::span(buffers->theirs));
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int member = 0; member < size(); ++member) {
    sends.push_back({member, mine});
    receives.push_back({member, theirs.subspan(member * mine.size(), mine.size())});
  }
  auto finish = [buffers, values, count, members = size()] {
    for (std::size_t i = 0; i < count; ++i) {
      for (int member = 0; member < members; ++member) values[i] += buffers->theirs[member * count + i];
    }
  };
  return std::make_unique<Finishing>(exchange("all_reduce", {}, sends, receives), finish);
}

PendingPtr PairwiseCommunicator::receive_and_sum(const char* operation, const Cargo& cargo, ConstBytes values,
                                                 std::size_t width, std::span<const std::int64_t> cut, Sum sum) {
  std::size_t bytes = static_cast<std::size_t>(cut[rank() + 1] - cut[rank()]) * width;
  auto theirs = std::make_shared<std::vector<std::byte>>(bytes * static_cast<std::size_t>(size()));
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<const std::byte*> terms;
  for (int member = 0; member < size(); ++member) {
    auto begin = static_cast<std::size_t>(cut[member]) * width, end = static_cast<std::size_t>(cut[member + 1]) * width;
    sends.push_back({member, values.subspan(begin, end - begin)});
    receives.push_back({member, Bytes(*theirs).subspan(static_cast<std::size_t>(member) * bytes, bytes)});
    terms.push_back(member == rank() ? values.data() + begin : receives.back().bytes.data());
  }
  auto finish = [theirs, terms, sum = std::move(sum)] { sum(terms); };
  return std::make_unique<Finishing>(exchange(operation, cargo, sends, receives), finish);
}

PendingPtr PairwiseCommunicator::all_to_all_sum(ConstBytes values, Element element, std::span<const std::int64_t> cut,
                                                std::span<float> sum, const Cargo& cargo) {
  check_sum(values.size() / element_bytes(element), cut, sum, size(), rank());
  auto add = [=](std::span<const std::byte* const> terms) { sum_in_order(element, terms, sum.size(), sum.data()); };
  return receive_and_sum("all_to_all_sum", cargo, values, element_bytes(element), cut, add);
}

PendingPtr PairwiseCommunicator::reduce_scatter(std::span<const float> values, std::span<const std::int64_t> cut,
                                                std::span<float> sum, const Cargo& cargo) {
  check_sum(values.size(), cut, sum, size(), rank());
  auto add = [this, sum](std::span<const std::byte* const> terms) {
    std::vector<std::vector<float>> of_nodes(static_cast<std::size_t>(map_.nodes()), std::vector<float>(sum.size()));
    std::vector<const std::byte*> node_terms;
    for (int node = 0; node < map_.nodes(); ++node) {
      sum_in_order(Element::fp32, terms.subspan(static_cast<std::size_t>(map_.first(node)), map_.members(node)),
                   sum.size(), of_nodes[node].data());
      node_terms.push_back(reinterpret_cast<const std::byte*>(of_nodes[node].data()));
    }
    sum_in_order(Element::fp32, node_terms, sum.size(), sum.data());
  };
  return receive_and_sum("reduce_scatter", cargo, std::as_bytes(values), sizeof(float), cut, add);
}

void PairwiseCommunicator::barrier(Deadline deadline) {
  std::vector<std::byte> tokens(size());
  std::byte mine{1};
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int member = 0; member < size(); ++member) {
    sends.push_back({member, ConstBytes(&mine, 1)});
    receives.push_back({member, Bytes(tokens).subspan(member, 1)});
  }
  exchange("barrier", {}, sends, receives)->wait(deadline);
}

}  // namespace ganymede::collectives
