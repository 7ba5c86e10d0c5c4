#include "launcher/cli/plan_capacity.h"

#include "common/model_spec/model_spec.h"
#include "common/plan/pool.h"
#include "launcher/supervisor/memory_estimate.h"

namespace ganymede::cli {
namespace {

constexpr double gib = 1u << 30;

/// What the worker computes with: its pool and the tables of rotations.
double worker_bytes(const PlanReport& report) {
  return static_cast<double>(report.plan.pool_bytes + report.plan.rotary_bytes);
}

/// Of one rank. Where a device has memory of its own the pool lies there; else in host memory, in the segment
/// `pool.0` where that is published.
double host_bytes(const PlanReport& report, bool one_memory) {
  double sum = static_cast<double>(launcher::services_bytes(report.config, one_memory));
  for (const auto& segment : report.segments) {
    if (one_memory || segment.name != "pool.0") sum += static_cast<double>(segment.bytes);
  }
  if (!one_memory) return sum;
  double pool = plan::pool_is_published(report.config) ? static_cast<double>(report.plan.pool_bytes) : 0;
  return sum + worker_bytes(report) - pool;
}

/// Devices of the whole world.
double devices(const PlanReport& report, bool shared) {
  int per_node = report.config.topology.ranks_per_node, ranks = report.config.parallel.ranks;
  if (!shared) return ranks;
  return per_node == 0 ? 1 : (ranks + per_node - 1) / per_node;
}

}  // namespace

void hold_against(const plan::Hardware& hardware, PlanReport& report) {
  int node_ranks = plan::node_ranks(report.config, report.placement.rank);
  const plan::Hardware::Compute& compute = hardware.compute;
  auto add = [&](const char* memory, double of_rank, int ranks, double capacity_gib, bool with_state) {
    if (capacity_gib > 0)
      report.memory_uses.push_back({memory, of_rank * ranks, capacity_gib * gib, ranks, with_state});
  };
  add("device", worker_bytes(report), compute.shared ? node_ranks : 1, hardware.memory.device_gib, false);
  bool one_memory = hardware.host_link.gb_per_second == 0;
  report.pool_in_device = !one_memory;
  add("host of a node", host_bytes(report, one_memory), node_ranks, hardware.memory.host_gib_per_node, true);
  report.peak_gflops = report.config.compute.dtype == config::Dtype::bf16 ? compute.bf16_gflops : compute.fp32_gflops;
  double flops =
      model_spec::flops_per_token(report.config.model, report.config.data.seq_len) * report.tokens_per_second();
  report.flops_utilisation = flops / (report.peak_gflops * 1e9 * devices(report, compute.shared));
}

}  // namespace ganymede::cli
