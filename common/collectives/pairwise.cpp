#include "common/collectives/pairwise.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/error.h"

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

void check_offsets(std::span<const std::size_t> offsets, int size, std::size_t bytes, const char* operation) {
  GANYMEDE_CHECK(offsets.size() == static_cast<std::size_t>(size) + 1, "{}: {} offsets for {} members", operation,
                 offsets.size(), size);
  GANYMEDE_CHECK(std::is_sorted(offsets.begin(), offsets.end()) && offsets.back() <= bytes,
                 "{}: offsets that end at {} do not fit {} bytes", operation, offsets.back(), bytes);
}

}  // namespace

PairwiseCommunicator::PairwiseCommunicator(Group group) : group_(std::move(group)) {
  auto mine = std::find(group_.ranks.begin(), group_.ranks.end(), group_.rank);
  GANYMEDE_CHECK(mine != group_.ranks.end(), "rank {} is not in group {}", group_.rank, group_.name);
  place_ = static_cast<int>(mine - group_.ranks.begin());
}

PendingPtr PairwiseCommunicator::exchange(const char* operation, const std::vector<Send>& sends,
                                          const std::vector<Receive>& receives) {
  std::vector<Send> real_sends;
  std::vector<Receive> real_receives;
  std::uint64_t bytes = 0;
  for (const Send& send : sends) {
    if (send.member == place_ || send.bytes.empty()) continue;
    real_sends.push_back(send);
    bytes += send.bytes.size();
  }
  for (const Receive& receive : receives) {
    if (receive.member != place_ && !receive.bytes.empty()) real_receives.push_back(receive);
  }
  {
    std::lock_guard lock(traffic_mutex_);
    bytes_sent_[operation] += bytes;
  }
  return start(real_sends, real_receives);
}

PendingPtr PairwiseCommunicator::all_gather(ConstBytes mine, Bytes all, std::span<const std::size_t> offsets) {
  check_offsets(offsets, size(), all.size(), "all_gather");
  Bytes own = part(all, offsets, place_);
  GANYMEDE_CHECK(own.size() == mine.size(), "all_gather: {} bytes of its own, the offsets say {}", mine.size(),
                 own.size());
  if (own.data() != mine.data() && !own.empty()) std::memcpy(own.data(), mine.data(), mine.size());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  // Each starts with its right neighbour, so that the members do not all send to the same one.
  for (int step = 1; step < size(); ++step) {
    sends.push_back({(place_ + step) % size(), mine});
    int from = (place_ - step + size()) % size();
    receives.push_back({from, part(all, offsets, from)});
  }
  return exchange("all_gather", sends, receives);
}

PendingPtr PairwiseCommunicator::all_to_all(ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                                            std::span<const std::size_t> receive_offsets) {
  check_offsets(send_offsets, size(), send.size(), "all_to_all");
  check_offsets(receive_offsets, size(), receive.size(), "all_to_all");
  ConstBytes kept = part(send, send_offsets, place_);
  Bytes own = part(receive, receive_offsets, place_);
  GANYMEDE_CHECK(kept.size() == own.size(), "all_to_all: sends itself {} bytes and expects {}", kept.size(),
                 own.size());
  if (own.data() != kept.data() && !own.empty()) std::memcpy(own.data(), kept.data(), kept.size());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int step = 1; step < size(); ++step) {
    int to = (place_ + step) % size();
    int from = (place_ - step + size()) % size();
    sends.push_back({to, part(send, send_offsets, to)});
    receives.push_back({from, part(receive, receive_offsets, from)});
  }
  return exchange("all_to_all", sends, receives);
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
  return std::make_unique<Finishing>(exchange("all_reduce", sends, receives), finish);
}

PendingPtr PairwiseCommunicator::reduce_scatter(std::span<const float> values, std::span<const std::int64_t> cut,
                                                std::span<float> sum) {
  GANYMEDE_CHECK(cut.size() == static_cast<std::size_t>(size()) + 1 &&
                     sum.size() == static_cast<std::size_t>(cut[place_ + 1] - cut[place_]),
                 "reduce_scatter: {} boundaries and room for {} sums in a group of {}", cut.size(), sum.size(), size());
  auto theirs = std::make_shared<std::vector<float>>(sum.size() * size());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int member = 0; member < size(); ++member) {
    sends.push_back({member, std::as_bytes(values.subspan(cut[member], cut[member + 1] - cut[member]))});
    receives.push_back(
        {member, std::as_writable_bytes(std::span(*theirs)).subspan(member * sum.size_bytes(), sum.size_bytes())});
  }
  std::span<const float> own = values.subspan(cut[place_], sum.size());
  auto finish = [theirs, sum, own, members = size(), place = place_] {
    for (int member = 0; member < members; ++member) {
      const float* term = member == place ? own.data() : theirs->data() + member * sum.size();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = member == 0 ? term[i] : sum[i] + term[i];
    }
  };
  return std::make_unique<Finishing>(exchange("reduce_scatter", sends, receives), finish);
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
  exchange("barrier", sends, receives)->wait(deadline);
}

std::vector<Traffic> PairwiseCommunicator::traffic() const {
  std::lock_guard lock(traffic_mutex_);
  std::vector<Traffic> result;
  for (const auto& [operation, bytes] : bytes_sent_) result.push_back({operation, bytes});
  return result;
}

}  // namespace ganymede::collectives
