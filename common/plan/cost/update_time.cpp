#include "common/plan/cost/update_time.h"

#include <algorithm>

#include "common/plan/traffic.h"

namespace ganymede::plan {
namespace {

/// Of one chunk. Read: gradient, master, state. Written: master, state, working copy. Matrices move what is
/// orthogonalised and what comes of it besides.
double chunk_ms(const config::Config& config, const placement::Placement& placement, const Hardware& hardware,
                const placement::Chunk& chunk) {
  if (chunk.parameter < 0) return 0;
  double state = 8.0 * static_cast<double>(placement.update.optimizer_of(chunk.parameter).element_slots());
  double working = config.compute.dtype == config::Dtype::bf16 ? 2 : 4, bytes = 12 + state + working;
  if (chunk.phase == placement::Phase::state) bytes = 4 + state + 4;
  if (chunk.phase == placement::Phase::master) bytes = 4 + 8 + working;
  double sharing = hardware.memory.shared ? node_ranks(config, placement.rank) : 1;
  return static_cast<double>(chunk.count) * bytes * sharing / hardware.memory.host_gb_per_second / 1e6;
}

}  // namespace

double update_ms(const config::Config& config, const placement::Placement& placement, const Hardware& hardware) {
  double sum = 0;
  for (const placement::Chunk& chunk : placement.chunks) sum += chunk_ms(config, placement, hardware, chunk);
  return sum;
}

std::vector<double> updated_from_ms(const StepPlan& plan, const config::Config& config,
                                    const placement::Placement& placement, const Hardware& hardware) {
  double all = 0;
  std::vector<double> bucket_ms(placement.buckets.size(), 0), from;
  for (const placement::Chunk& chunk : placement.chunks) {
    bucket_ms[static_cast<std::size_t>(chunk.bucket)] = all += chunk_ms(config, placement, hardware, chunk);
  }
  for (std::size_t i = 1; i < bucket_ms.size(); i++) bucket_ms[i] = std::max(bucket_ms[i], bucket_ms[i - 1]);
  for (const Operation& operation : plan.operations) {
    bool gather = operation.kind == OperationKind::gather;
    from.push_back(gather ? bucket_ms[operation.bucket] : operation.kind == OperationKind::wait_update ? all : 0);
  }
  return from;
}

}  // namespace ganymede::plan
