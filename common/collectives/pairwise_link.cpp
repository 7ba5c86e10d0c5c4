#include "common/collectives/pairwise_link.h"

#include <cstring>
#include <deque>
#include <utility>

#include "common/collectives/sums.h"

namespace ganymede::collectives {
namespace {

class PairwiseLink : public NodeLink {
 public:
  explicit PairwiseLink(std::unique_ptr<PairwiseCommunicator> messages) : messages_(std::move(messages)) {}
  bool reads_in_place() const override { return false; }
  void interrupt() override { messages_->abort(); }

  void copy(const std::vector<Outgoing>& sends, const std::vector<Incoming>& receives, Deadline deadline) override {
    std::vector<Receive> to;
    for (const Incoming& in : receives) to.push_back({in.peer, {in.to, total_bytes(in.runs)}});
    std::deque<std::vector<std::byte>> joined;  // before what uses it
    messages_->messages(joined_sends(sends, joined), to)->wait(deadline);
  }

  void sum(const std::vector<Outgoing>& sends, const std::vector<Term>& terms, Element element, std::span<float> sum,
           Deadline deadline) override {
    std::size_t bytes = sum.size() * element_bytes(element);
    std::deque<std::vector<std::byte>> buffers;
    std::vector<Receive> receives;
    std::vector<const std::byte*> from;
    for (const Term& term : terms) {
      if (bytes == 0) break;
      bool in_place = term.peer < 0 && term.runs.size() == 1;
      if (!in_place) buffers.emplace_back(bytes);
      if (term.peer >= 0) receives.push_back({term.peer, buffers.back()});
      if (term.peer < 0 && !in_place) join(term.base, term.runs, buffers.back());
      from.push_back(in_place ? term.base + term.runs.front().offset : buffers.back().data());
    }
    messages_->messages(joined_sends(sends, buffers), receives)->wait(deadline);
    if (bytes > 0) sum_in_order(element, from, sum.size(), sum.data());
  }

 private:
  static void join(const std::byte* base, const Runs& runs, std::vector<std::byte>& to) {
    std::size_t at = 0;
    for (const Run& run : runs) {
      std::memcpy(to.data() + at, base + run.offset, run.bytes);
      at += run.bytes;
    }
  }

  /// Messages of one run are sent from where they are.
  static std::vector<Send> joined_sends(const std::vector<Outgoing>& sends,
                                        std::deque<std::vector<std::byte>>& buffers) {
    std::vector<Send> result;
    for (const Outgoing& send : sends) {
      if (send.runs.size() == 1) {
        result.push_back({send.peer, {send.base + send.runs.front().offset, send.runs.front().bytes}});
        continue;
      }
      buffers.emplace_back(total_bytes(send.runs));
      join(send.base, send.runs, buffers.back());
      result.push_back({send.peer, buffers.back()});
    }
    return result;
  }

  std::unique_ptr<PairwiseCommunicator> messages_;
};

}  // namespace

std::unique_ptr<NodeLink> make_pairwise_link(std::unique_ptr<PairwiseCommunicator> messages) {
  return std::make_unique<PairwiseLink>(std::move(messages));
}

}  // namespace ganymede::collectives
