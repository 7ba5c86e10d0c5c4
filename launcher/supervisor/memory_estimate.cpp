#include "launcher/supervisor/memory_estimate.h"

#include <algorithm>
#include <map>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/cell/layouts.h"
#include "common/model_spec/model_spec.h"
#include "common/plan/exchange_form.h"
#include "common/plan/pool.h"

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

/// What backward holds of a row whose tokens are at the experts of other ranks, in elements a token: attention and
/// router computed again.
double waiting_elements_per_token(const config::Config& config) {
  const auto& m = config.model;
  return m.heads * (2.0 * m.qk_dim + 2.0 * m.v_dim) + 4.0 * m.hidden + m.experts;
}

/// In bytes.
double worker_scratch(const config::Config& config) {
  int rows = plan::exchange_form(config).travels() ? config.data.rows_per_step / config.parallel.ranks : 1;
  double waiting = std::clamp(rows, 1, plan::rows_under_way) - 1;
  double elements = layer_elements_per_token(config) + waiting * waiting_elements_per_token(config);
  double layer = elements * config.data.seq_len * sizeof(float);
  double logits = 3.0 * config.compute.loss_chunk * config.model.vocabulary * sizeof(float);
  return std::max(layer, logits);
}

/// A part of what is needed, and what makes it smaller.
struct Part {
  double bytes = 0;
  const char *what = "", *way_out = "";
};

/// What needs no layout to be known, of all cells of the world, in floating point: it may be more than 64 bits hold.
std::vector<Part> least_parts(const config::Config& config, const service::Job& job) {
  const auto& c = config;
  std::size_t slots = job.plugins.empty() ? 0 : job.plugins.front().facts.element_slots();
  for (const service::JobPlugin& plugin : job.plugins) slots = std::min(slots, plugin.facts.element_slots());
  double ranks = c.parallel.ranks, arrays = 2 + static_cast<double>(slots);  // master, gradients, state
  double copies = arrays * (c.replicas.state == config::ReplicaState::sharded ? 1 : c.parallel.replicas);
  double tokens = static_cast<double>(c.data.rows_per_step) * c.data.seq_len;
  double validated = static_cast<double>(c.validation.rows) * c.data.seq_len;
  double hidden = static_cast<double>(c.model.hidden) * (c.compute.dtype == config::Dtype::bf16 ? 2 : 4);
  const char* batch_keys = "a shorter data.seq_len, fewer data.rows_per_step or validation.rows";
  return {{copies * sizeof(float) * static_cast<double>(model_spec::count(c.model).total),
           "parameters, gradients and optimizer state", "a smaller model"},
          {ranks * static_cast<double>(worker_base + optimizer_base + data_base + checkpoint_base),
           "the programs of all ranks", "fewer parallel.ranks"},
          {12 * (tokens * c.data.slots + validated), "the batches", batch_keys},
          {c.model.layers * tokens * hidden, "the inputs of all layers", batch_keys},
          {ranks * worker_scratch(c), "what one layer computes with",
           "a shorter data.seq_len, a smaller compute.loss_chunk or a smaller model"}};
}

/// What no memory holds is refused before anything is laid out: the layout alone would fill the memory, or take hours.
/// `share`: of the world that is on this node; `memory`: of the machine, 0: not known.
void require_room_for_least(const config::Config& config, const service::Job& job, double share, std::uint64_t memory) {
  auto parts = least_parts(config, job);
  double sum = 0;
  for (Part& part : parts) sum += part.bytes *= share;
  if (memory == 0 || sum <= static_cast<double>(memory)) return;
  const Part& most = *std::max_element(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; });
  fail("{} of host memory are needed at least, {} of it for {}, but this machine has {}: use {}.", human_bytes(sum),
       human_bytes(most.bytes), most.what, human_bytes(static_cast<double>(memory)), most.way_out);
}

/// Of each segment the largest of any rank.
void take_largest(HostBudget& budget, const std::vector<shm::Layout>& layouts) {
  if (budget.rows.empty())
    for (const auto& layout : layouts) budget.rows.push_back({layout.name, 0});
  for (std::size_t i = 0; i < layouts.size(); ++i)
    budget.rows[i].bytes_per_cell = std::max(budget.rows[i].bytes_per_cell, layouts[i].size);
}

/// `taken`: bytes of the configured limit that others have.
void take_available(HostBudget& budget, const config::Config& config, const os::Machine& machine, std::uint64_t taken) {
  budget.known = machine.memory_total > 0;
  budget.available = machine.memory_available;
  budget.limit_file = machine.memory_limit_file;
  double limit = config.launch.host_memory_limit_gib;
  if (limit <= 0) return;
  auto bytes = static_cast<std::uint64_t>(limit * (1u << 30));
  bytes -= std::min(bytes, taken);
  budget.limited = !budget.known || bytes < budget.available;
  if (budget.limited) budget.available = bytes;
}

}  // namespace

HostBudget estimate_memory(const config::Config& config, const service::Job& job, coordinator::RankRange ranks,
                           const os::Machine& machine) {
  require_room_for_least(config, job, static_cast<double>(ranks.count) / config.parallel.ranks, machine.memory_total);
  HostBudget budget;
  budget.cells = ranks.count;
  std::uint64_t pool = 0;
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    auto placement = placement::build(config, rank, job.optimizers());
    auto layouts = shm::cell_layouts(config, placement);
    take_largest(budget, layouts);
    if (!plan::pool_is_published(config))  // else it is a segment
      pool = std::max(pool, static_cast<std::uint64_t>(plan::pool_bytes(config, placement)));
  }
  budget.rows.push_back({"worker process", worker_base + pool + static_cast<std::uint64_t>(worker_scratch(config))});
  budget.rows.push_back({"optimizer process", optimizer_base});
  budget.rows.push_back({"data process", data_base});
  budget.rows.push_back({"checkpoint process", checkpoint_base});
  take_available(budget, config, machine, 0);
  return budget;
}

HostBudget estimate_epoch_memory(const config::Config& config, const service::JobEpoch& epoch,
                                 coordinator::RankRange ranks, const HostBudget& running, const os::Machine& machine) {
  HostBudget budget;
  budget.cells = ranks.count;
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    auto placement = placement::build(config, rank, epoch.optimizers());
    take_largest(budget, shm::epoch_layouts(config, placement, epoch.number));
  }
  budget.rows.push_back({"optimizer process", optimizer_base});
  take_available(budget, config, machine, running.needed());
  return budget;
}

std::uint64_t services_bytes(const config::Config& config, bool computes) {
  double scratch = computes ? worker_scratch(config) : 0;
  return worker_base + optimizer_base + data_base + checkpoint_base + static_cast<std::uint64_t>(scratch);
}

std::uint64_t epoch_bytes(const config::Config& config, const service::JobEpoch& epoch, coordinator::RankRange ranks) {
  std::uint64_t sum = 0;
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank)
    for (const auto& layout :
         shm::epoch_layouts(config, placement::build(config, rank, epoch.optimizers()), epoch.number))
      sum += layout.size;
  return sum;
}

std::uint64_t segment_bytes(const config::Config& config, const service::Job& job, coordinator::RankRange ranks) {
  std::uint64_t sum = 0;
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank)
    for (const auto& layout : shm::cell_layouts(config, placement::build(config, rank, job.optimizers())))
      sum += layout.size;
  return sum;
}

}  // namespace ganymede::launcher
