#include "common/collectives/composed.h"

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "common/collectives/arguments.h"
#include "common/collectives/composed_operations.h"
#include "common/collectives/operation_queue.h"
#include "common/collectives/sums.h"

namespace ganymede::collectives {
namespace {

int place_in(const Group& group) {
  auto mine = std::find(group.ranks.begin(), group.ranks.end(), group.rank);
  GANYMEDE_CHECK(mine != group.ranks.end(), "rank {} is not in group {}", group.rank, group.name);
  return static_cast<int>(mine - group.ranks.begin());
}

template <class T>
std::vector<T> owned(std::span<const T> values) {
  return {values.begin(), values.end()};
}

class Composed : public Communicator {
 public:
  Composed(const Group& group, Links links, std::size_t scratch_bytes)
      : map_(group.nodes, static_cast<int>(group.ranks.size()), place_in(group)),
        links_(std::move(links)),
        scratch_bytes_(scratch_bytes),
        queue_(group.name, [this] {
          if (links_.inside) links_.inside->interrupt();
          if (links_.between) links_.between->abort();
        }) {
    GANYMEDE_CHECK((links_.inside || map_.local_members() == 1) && (links_.between || map_.nodes() == 1),
                   "group {} of {} nodes lacks a link", group.name, map_.nodes());
  }

  int rank() const override { return map_.member(); }
  int size() const override { return map_.size(); }

  PendingPtr all_gather(ConstBytes mine, Bytes all, std::span<const std::size_t> offsets, const Cargo& cargo) override {
    check_gather(mine, all, offsets, size(), rank());
    return add("all_gather", cargo,
               [mine, all, at = owned(offsets)](Carrier& carrier) { gather_by_topology(carrier, mine, all, at); });
  }

  PendingPtr all_to_all(ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                        std::span<const std::size_t> receive_offsets, const Cargo& cargo) override {
    check_exchange(send, send_offsets, receive, receive_offsets, size(), rank());
    return add("all_to_all", cargo, [=, from = owned(send_offsets), to = owned(receive_offsets)](Carrier& carrier) {
      exchange_all(carrier, send, from, receive, to);
    });
  }

  PendingPtr all_reduce(std::span<std::int64_t> values) override {
    return add("all_reduce", {}, [=, this](Carrier& carrier) { sum_integers(carrier, values, scratch_bytes_); });
  }

  PendingPtr reduce_scatter(std::span<const float> values, std::span<const std::int64_t> cut, std::span<float> sum,
                            const Cargo& cargo) override {
    check_sum(values.size(), cut, sum, size(), rank());
    return add("reduce_scatter", cargo, [=, this, at = owned(cut)](Carrier& carrier) {
      sum_node_first(carrier, values, at, sum, scratch_bytes_);
    });
  }

  PendingPtr all_to_all_sum(ConstBytes values, Element element, std::span<const std::int64_t> cut, std::span<float> sum,
                            const Cargo& cargo) override {
    check_sum(values.size() / element_bytes(element), cut, sum, size(), rank());
    return add("all_to_all_sum", cargo, [=, this, at = owned(cut)](Carrier& carrier) {
      sum_at_receiver(carrier, values.data(), element, at, sum, scratch_bytes_);
    });
  }

  void barrier(Deadline deadline) override {
    std::byte token{1};
    std::vector<std::byte> tokens(static_cast<std::size_t>(size()));
    std::vector<std::size_t> offsets;
    for (std::size_t i = 0; i <= tokens.size(); ++i) offsets.push_back(i);
    auto gather = [&](Carrier& carrier) { gather_by_topology(carrier, {&token, 1}, tokens, offsets); };
    add("barrier", {}, gather)->wait(deadline);
  }

  void abort() override { queue_.abort(); }
  std::vector<Traffic> traffic() const override { return counter_.all(); }

 private:
  template <class Body>
  PendingPtr add(const char* operation, const Cargo& cargo, Body body) {
    return queue_.add([this, operation, cargo, body = std::move(body)](Deadline deadline) {
      Carrier carrier(map_, links_, counter_, operation, cargo, deadline);
      body(carrier);
    });
  }

  NodeMap map_;
  Links links_;
  std::size_t scratch_bytes_;
  TrafficCounter counter_;
  OperationQueue queue_;  // last: it ends what is under way before the links go
};

}  // namespace

std::unique_ptr<Communicator> make_composed(const Group& group, Links links, std::size_t scratch_bytes) {
  return std::make_unique<Composed>(group, std::move(links), scratch_bytes);
}

}  // namespace ganymede::collectives
