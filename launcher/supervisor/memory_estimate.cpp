#include "launcher/supervisor/memory_estimate.h"

#include <algorithm>
#include <map>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/model_spec/model_spec.h"
#include "common/plan/plan.h"
#include "common/shm/layouts.h"

namespace ganymede::launcher {
namespace {

constexpr std::uint64_t mib = 1u << 20;

// Resident memory of idle services, measured, with room.
constexpr std::uint64_t worker_base = 320 * mib;      // libtorch with its threads
constexpr std::uint64_t optimizer_base = 16 * mib;    // chunks live on the threads' stacks
constexpr std::uint64_t data_base = 32 * mib;         // the dataset itself is mapped from its file
constexpr std::uint64_t checkpoint_base = 160 * mib;  // RocksDB and two values of up to 64 MiB under way

/// What autograd and matrix products hold inside one layer for one row at a time, in elements a token: queries, keys,
/// values, scores of one head at a time, the experts' three products, and the gradients of all of these.
double layer_elements_per_token(const config::Config& config) {
  const auto& m = config.model;
  double attention = m.heads * (2.0 * m.qk_dim + 2.0 * m.v_dim) + static_cast<double>(m.heads) * config.data.seq_len;
  double feed_forward = std::max<double>(m.dense_layers > 0 ? 3.0 * m.ffn : 0, 3.0 * m.top_k * m.expert_ffn);
  return 3 * (attention + feed_forward + 6.0 * m.hidden);
}

std::uint64_t worker_scratch(const config::Config& config) {
  double layer = layer_elements_per_token(config) * config.data.seq_len * sizeof(float);
  double logits = 3.0 * config.compute.loss_chunk * config.model.vocabulary * sizeof(float);
  return static_cast<std::uint64_t>(std::max(layer, logits));
}

/// A model that no memory holds is refused by its number of parameters: its layout alone would fill the memory.
void require_room_for_parameters(const config::Config& config, const service::Job& job, std::uint64_t memory) {
  double copies = 2 + static_cast<double>(job.slots.size());  // master, gradients, state
  double least = copies * sizeof(float) * static_cast<double>(model_spec::count(config.model).total);
  if (least <= static_cast<double>(memory)) return;
  fail(
      "{} of host memory are needed for parameters, gradients and optimizer state alone, but this machine has {}: use "
      "a smaller model.",
      human_bytes(least), human_bytes(static_cast<double>(memory)));
}

}  // namespace

HostBudget estimate_memory(const config::Config& config, const service::Job& job, const os::Machine& machine) {
  require_room_for_parameters(config, job, machine.memory_total);
  HostBudget budget;
  budget.cells = config.parallel.ranks;
  std::uint64_t pool = 0;
  for (int rank = 0; rank < config.parallel.ranks; ++rank) {
    auto placement = placement::build(config, rank);
    auto layouts = shm::cell_layouts(config, placement, job.slots);
    if (budget.rows.empty())
      for (const auto& layout : layouts) budget.rows.push_back({layout.name, 0});
    for (std::size_t i = 0; i < layouts.size(); ++i)
      budget.rows[i].bytes_per_cell = std::max(budget.rows[i].bytes_per_cell, layouts[i].size);
    for (auto kind : {plan::PlanKind::train, plan::PlanKind::validate})
      pool = std::max(pool, static_cast<std::uint64_t>(plan::build(config, placement, kind).pool_bytes));
  }
  budget.rows.push_back({"worker process", worker_base + pool + worker_scratch(config)});
  budget.rows.push_back({"optimizer process", optimizer_base});
  budget.rows.push_back({"data process", data_base});
  budget.rows.push_back({"checkpoint process", checkpoint_base});
  budget.available = machine.memory_available;
  if (double limit = config.launch.host_memory_limit_gib; limit > 0) {
    auto bytes = static_cast<std::uint64_t>(limit * (1u << 30));
    budget.limited = bytes < budget.available;
    budget.available = std::min(budget.available, bytes);
  }
  return budget;
}

std::uint64_t segment_bytes(const config::Config& config, const service::Job& job) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < config.parallel.ranks; ++rank)
    for (const auto& layout : shm::cell_layouts(config, placement::build(config, rank), job.slots)) sum += layout.size;
  return sum;
}

}  // namespace ganymede::launcher
