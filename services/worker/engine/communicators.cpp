#include "services/worker/engine/communicators.h"

#include <numeric>
#include <string>

#include "common/base/error.h"

namespace ganymede::worker {
namespace {

using collectives::Communicator;

std::uint64_t sent(const Communicator* communicator) {
  std::uint64_t bytes = 0;
  if (communicator == nullptr) return 0;
  for (const collectives::Traffic& traffic : communicator->traffic()) bytes += traffic.bytes_sent;
  return bytes;
}

/// The ranks that share this rank's expert buckets, if they are several and not the whole world.
std::vector<int> expert_sharers(const placement::Placement& placement) {
  for (const placement::Bucket& bucket : placement.buckets) {
    if (bucket.kind != model_spec::BucketKind::experts) continue;
    bool own_group = bucket.group.size() > 1 && static_cast<int>(bucket.group.size()) < placement.world;
    return own_group ? bucket.group : std::vector<int>{};
  }
  return {};
}

}  // namespace

Communicators::Communicators(const placement::Placement& placement, double timeout_seconds,
                             const MakeCommunicator& make)
    : world_(static_cast<std::size_t>(placement.world)) {
  auto form = [&](const std::string& name, const std::vector<int>& ranks) {
    return make({name, ranks, placement.rank, timeout_seconds});
  };
  std::vector<int> everyone(world_);
  std::iota(everyone.begin(), everyone.end(), 0);
  control_ = form("control", everyone);
  gather_ = form("gather", everyone);
  reduce_ = form("reduce", everyone);
  if (std::vector<int> sharers = expert_sharers(placement); !sharers.empty()) {
    expert_gather_ = form(fmt::format("gather.experts.{}", placement.expert_place), sharers);
    expert_reduce_ = form(fmt::format("reduce.experts.{}", placement.expert_place), sharers);
  }
  if (placement.expert_group > 1) {
    exchange_ = form(fmt::format("exchange.{}", placement.expert_ranks.front()), placement.expert_ranks);
  }
}

Communicator& Communicators::gather(const placement::Bucket& bucket) {
  return bucket.group.size() == world_ ? *gather_ : *expert_gather_;
}

Communicator& Communicators::reduce(const placement::Bucket& bucket) {
  return bucket.group.size() == world_ ? *reduce_ : *expert_reduce_;
}

void Communicators::abort() {
  for (auto* one : {&control_, &gather_, &reduce_, &expert_gather_, &expert_reduce_, &exchange_}) {
    if (*one) (*one)->abort();
  }
}

Communicators::Moved Communicators::moved() const {
  return {sent(gather_.get()) + sent(expert_gather_.get()), sent(reduce_.get()) + sent(expert_reduce_.get()),
          sent(exchange_.get()), sent(control_.get())};
}

}  // namespace ganymede::worker
