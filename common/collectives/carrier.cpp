#include "common/collectives/carrier.h"

#include <algorithm>

#include "common/collectives/sums.h"

namespace ganymede::collectives {

PendingPtr Carrier::between(const std::vector<Send>& sends, const std::vector<Receive>& receives) {
  if (links_.between == nullptr) return nullptr;
  std::vector<Send> real_sends;
  std::vector<Receive> real_receives;
  std::uint64_t bytes = 0;
  for (const Send& send : sends) {
    if (send.bytes.empty()) continue;
    real_sends.push_back(send);
    bytes += send.bytes.size();
  }
  for (const Receive& receive : receives) {
    if (!receive.bytes.empty()) real_receives.push_back(receive);
  }
  counter_.add(operation_, cargo_, 0, bytes);
  return links_.between->messages(real_sends, real_receives);
}

std::vector<Outgoing> Carrier::real(std::vector<Outgoing> sends) {
  std::erase_if(sends, [&](const Outgoing& send) { return send.peer == map.member() || send.runs.empty(); });
  std::uint64_t bytes = 0;
  for (Outgoing& send : sends) {
    bytes += total_bytes(send.runs);
    send.peer -= map.local_first();
  }
  counter_.add(operation_, cargo_, bytes, 0);
  return sends;
}

void Carrier::copy_inside(std::vector<Outgoing> sends, std::vector<Incoming> receives) {
  sends = real(std::move(sends));
  std::erase_if(receives, [&](const Incoming& in) { return in.peer == map.member() || in.runs.empty(); });
  for (Incoming& receive : receives) receive.peer -= map.local_first();
  if (links_.inside != nullptr) links_.inside->copy(sends, receives, deadline_);
}

void Carrier::sum_inside(std::vector<Outgoing> sends, std::vector<Term> terms, Element element, std::span<float> sum) {
  sends = real(std::move(sends));
  for (Term& term : terms) {
    bool memory = term.peer < 0 || term.peer == map.member();
    term.peer = memory ? -1 : term.peer - map.local_first();
  }
  if (links_.inside != nullptr) return links_.inside->sum(sends, terms, element, sum, deadline_);
  // Alone in its node: all terms are memory, and of equal runs.
  std::size_t done = 0;
  std::vector<const std::byte*> from(terms.size());
  for (std::size_t run = 0; !sum.empty() && run < terms.front().runs.size(); ++run) {
    std::size_t count = terms.front().runs[run].bytes / element_bytes(element);
    for (std::size_t i = 0; i < terms.size(); ++i) from[i] = terms[i].base + terms[i].runs[run].offset;
    sum_in_order(element, from, count, sum.data() + done);
    done += count;
  }
}

}  // namespace ganymede::collectives
