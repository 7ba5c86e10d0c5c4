#include "common/collectives/shm/shm_link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "common/base/error.h"
#include "common/collectives/shm/copies.h"
#include "common/collectives/shm/streams.h"
#include "common/collectives/sums.h"

namespace ganymede::collectives {
namespace {

// Bytes that are moved before other streams, and aborts, get their turn.
constexpr std::size_t turn_bytes = 1u << 20;
// No sleep is longer: dead processes are looked for in between.
constexpr double longest_sleep_seconds = 0.02;

std::vector<OutgoingStream> streams_of(const std::vector<Outgoing>& sends) {
  std::vector<OutgoingStream> streams;
  for (const Outgoing& send : sends) {
    auto same = std::find_if(streams.begin(), streams.end(), [&](const auto& stream) { return stream.carries(send); });
    if (same == streams.end()) same = streams.insert(streams.end(), OutgoingStream(send.base, send.runs));
    same->add_reader(send.peer);
  }
  return streams;
}

class ShmLink : public NodeLink {
 public:
  ShmLink(Port& port, const Group& group, Store& store) : channel_(port, group, store) {}
  ~ShmLink() override = default;
  bool reads_in_place() const override { return true; }
  void copy(const std::vector<Outgoing>& sends, const std::vector<Incoming>& receives, Deadline deadline) override;
  void sum(const std::vector<Outgoing>& sends, const std::vector<Term>& terms, Element element, std::span<float> sum,
           Deadline deadline) override;
  void interrupt() override {
    interrupted_ = true;
    channel_.leave();
  }

 private:
  /// Drives one operation to its end. `receive` moves what has come and returns whether something was done.
  void drive(const std::vector<Outgoing>& sends, std::vector<IncomingStream>& incoming,
             const std::function<bool()>& receive, Deadline deadline);
  bool move(std::vector<OutgoingStream>& outgoing, const std::function<bool()>& receive);
  /// Members that something is still needed from.
  std::vector<int> waiting(const std::vector<OutgoingStream>& outgoing, const std::vector<IncomingStream>& incoming);
  std::vector<int> gone() const;
  void refuse_to_wait(const std::vector<int>& needed, const std::vector<int>& gone, Deadline deadline) const;
  std::string ranks(const std::vector<int>& peers) const;

  Channel channel_;
  std::atomic<bool> interrupted_{false};
};

void ShmLink::drive(const std::vector<Outgoing>& sends, std::vector<IncomingStream>& incoming,
                    const std::function<bool()>& receive, Deadline deadline) {
  channel_.next_operation();
  std::vector<OutgoingStream> outgoing = streams_of(sends);
  std::size_t each = outgoing.empty() ? 0 : channel_.own().staging.size() / outgoing.size() / 128 * 128;
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    outgoing[i].start(channel_, channel_.own().staging.subspan(i * each, each));
  }
  if (!outgoing.empty()) channel_.ring();
  while (true) {
    // Both are read before the last look at the counters: nothing that comes in between can be missed.
    std::vector<Bell> bells = channel_.bells();
    std::vector<int> left = gone();
    if (interrupted_) throw CollectiveError(fmt::format("group {}: aborted", channel_.name()));
    if (move(outgoing, receive)) continue;
    std::vector<int> needed = waiting(outgoing, incoming);
    if (needed.empty()) return;
    refuse_to_wait(needed, left, deadline);
    if (channel_.look_for_the_dead()) continue;
    wait_any(bells, deadline.left() < std::chrono::milliseconds(20) ? deadline
                                                                    : Deadline::after_seconds(longest_sleep_seconds));
  }
}

bool ShmLink::move(std::vector<OutgoingStream>& outgoing, const std::function<bool()>& receive) {
  bool moved = receive();
  for (OutgoingStream& stream : outgoing) moved = stream.advance(channel_) || moved;
  if (moved) channel_.ring();
  return moved;
}

std::vector<int> ShmLink::waiting(const std::vector<OutgoingStream>& outgoing,
                                  const std::vector<IncomingStream>& incoming) {
  std::vector<int> peers;
  for (const OutgoingStream& stream : outgoing) stream.append_waiting(channel_, peers);
  for (const IncomingStream& stream : incoming) {
    if (!stream.complete()) peers.push_back(stream.peer());
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

std::vector<int> ShmLink::gone() const {
  std::vector<int> peers;
  for (int peer = 0; peer < channel_.size(); ++peer) {
    if (peer != channel_.place() && channel_.gone(peer)) peers.push_back(peer);
  }
  return peers;
}

std::string ShmLink::ranks(const std::vector<int>& peers) const {
  std::vector<int> ranks;
  for (int peer : peers) ranks.push_back(channel_.rank_of(peer));
  return fmt::format("rank{} {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "));
}

void ShmLink::refuse_to_wait(const std::vector<int>& needed, const std::vector<int>& gone, Deadline deadline) const {
  std::vector<int> lost;
  std::set_intersection(needed.begin(), needed.end(), gone.begin(), gone.end(), std::back_inserter(lost));
  if (!lost.empty()) throw CollectiveError(fmt::format("group {}: {} left it", channel_.name(), ranks(lost)));
  if (!deadline.passed()) return;
  throw CollectiveError(fmt::format("group {}: {} did not come by the deadline", channel_.name(), ranks(needed)));
}

void ShmLink::copy(const std::vector<Outgoing>& sends, const std::vector<Incoming>& receives, Deadline deadline) {
  std::vector<IncomingStream> incoming;
  for (const Incoming& receive : receives) incoming.emplace_back(receive.peer, receive.runs);
  auto receive = [&] {
    bool moved = false;
    for (std::size_t i = 0; i < incoming.size(); ++i) {
      ConstBytes view = incoming[i].view(channel_);
      if (view.empty()) continue;
      std::size_t count = std::min(view.size(), turn_bytes);
      bool stream = incoming[i].bytes() >= streamed_message;
      std::byte* to = receives[i].to + incoming[i].cursor();
      stream ? copy_past_caches(to, view.data(), count) : static_cast<void>(std::memcpy(to, view.data(), count));
      incoming[i].consume(channel_, count);
      moved = true;
    }
    return moved;
  };
  drive(sends, incoming, receive, deadline);
}

/// Where one contribution to a sum is read from.
class TermReader {
 public:
  TermReader(const Term& term, IncomingStream* stream) : term_(term), stream_(stream) {}
  ConstBytes view(Channel& channel) const {
    if (stream_ != nullptr) return stream_->view(channel);
    if (run_ == term_.runs.size()) return {};
    return {term_.base + term_.runs[run_].offset + within_, term_.runs[run_].bytes - within_};
  }
  void consume(Channel& channel, std::size_t count) {
    if (stream_ != nullptr) return stream_->consume(channel, count);
    within_ += count;
    if (within_ < term_.runs[run_].bytes) return;
    within_ = 0;
    ++run_;
  }

 private:
  const Term& term_;
  IncomingStream* stream_;
  std::size_t run_ = 0, within_ = 0;
};

void ShmLink::sum(const std::vector<Outgoing>& sends, const std::vector<Term>& terms, Element element,
                  std::span<float> sum, Deadline deadline) {
  std::vector<IncomingStream> incoming;
  incoming.reserve(terms.size());  // readers point into it
  std::vector<TermReader> readers;
  bool empty = sum.empty();
  for (const Term& term : terms) {
    if (empty) break;
    if (term.peer >= 0) incoming.emplace_back(term.peer, term.runs);
    readers.emplace_back(term, term.peer >= 0 ? &incoming.back() : nullptr);
  }
  std::size_t done = 0;
  std::vector<const std::byte*> from(readers.size());
  auto receive = [&] {
    if (done == sum.size()) return false;
    std::size_t count = std::min(turn_bytes, (sum.size() - done) * element_bytes(element));
    for (std::size_t i = 0; i < readers.size(); ++i) {
      ConstBytes view = readers[i].view(channel_);
      if (view.empty()) return false;
      from[i] = view.data();
      count = std::min(count, view.size());
    }
    sum_in_order(element, from, count / element_bytes(element), sum.data() + done);
    for (TermReader& reader : readers) reader.consume(channel_, count);
    done += count / element_bytes(element);
    return true;
  };
  drive(sends, incoming, receive, deadline);
  GANYMEDE_CHECK(done == sum.size(), "a sum of {} elements ended after {}", sum.size(), done);
}

}  // namespace

std::unique_ptr<NodeLink> make_shm_link(Port& port, const Group& group, Store& store) {
  return std::make_unique<ShmLink>(port, group, store);
}

}  // namespace ganymede::collectives
