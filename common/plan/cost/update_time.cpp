#include "common/plan/cost/update_time.h"

#include "common/plan/traffic.h"

namespace ganymede::plan {
namespace {

double ms_per_element(const config::Config& config, const placement::Placement& placement, const Hardware& hardware,
                      int slots) {
  // Read: gradient, master, state. Written: master, state, working copy.
  double bytes = 4.0 * (3 + 2 * slots) + (config.compute.dtype == config::Dtype::bf16 ? 2 : 4);
  double sharing = hardware.memory.shared ? node_ranks(config, placement.rank) : 1;
  return bytes * sharing / hardware.memory.host_gb_per_second / 1e6;
}

}  // namespace

double update_ms(const config::Config& config, const placement::Placement& placement, const Hardware& hardware,
                 int slots) {
  return ms_per_element(config, placement, hardware, slots) * static_cast<double>(placement.shard_elements);
}

std::vector<double> updated_from_ms(const StepPlan& plan, const config::Config& config,
                                    const placement::Placement& placement, const Hardware& hardware, int slots) {
  double element_ms = ms_per_element(config, placement, hardware, slots), all = 0;
  std::vector<double> bucket_ms, from;
  for (const placement::Bucket& bucket : placement.buckets) {
    bucket_ms.push_back(all += element_ms * static_cast<double>(placement::aligned(bucket.shard_elements())));
  }
  for (const Operation& operation : plan.operations) {
    bool gather = operation.kind == OperationKind::gather;
    from.push_back(gather ? bucket_ms[operation.bucket] : operation.kind == OperationKind::wait_update ? all : 0);
  }
  return from;
}

}  // namespace ganymede::plan
