#include "common/plan/cost/ctas.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace ganymede::plan {
namespace {

/// Nothing for an operation that no such communicator carries.
std::optional<int> cap_of(OperationKind kind, const config::MaxCtas& caps) {
  switch (kind) {
    case OperationKind::gather:
      return caps.gather;
    case OperationKind::regather:
      return caps.regather;
    case OperationKind::reduce:
      return caps.reduce;
    case OperationKind::replica_reduce:
      return caps.replicas;
    case OperationKind::dispatch:
    case OperationKind::combine:
      return caps.exchange;
    case OperationKind::update_send:
    case OperationKind::update_return:
      return caps.matrices;
    default:
      return std::nullopt;
  }
}

}  // namespace

int ctas_of(OperationKind kind, const config::Config& config, const Hardware& hardware) {
  std::optional<int> cap = cap_of(kind, config.collectives.max_ctas);
  if (!cap) return 0;
  int standard = hardware.collectives.ctas;
  return *cap == 0 ? standard : std::min(*cap, standard);
}

double most_gb_per_second(OperationKind kind, const config::Config& config, const Hardware& hardware) {
  double each = hardware.collectives.cta_gb_per_second;
  int ctas = ctas_of(kind, config, hardware);
  return each == 0 || ctas == 0 ? std::numeric_limits<double>::infinity() : each * ctas;
}

std::vector<double> taken_shares(const StepPlan& plan, const std::vector<Moved>& sent, const config::Config& config,
                                 const Hardware& hardware) {
  std::vector<double> shares(plan.operations.size());
  double all = hardware.compute.multiprocessors;
  if (all == 0) return shares;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (sent[i].all() > 0) shares[i] = std::min(1.0, ctas_of(plan.operations[i].kind, config, hardware) / all);
  return shares;
}

}  // namespace ganymede::plan
