#include "common/cell/layouts.h"

#include <algorithm>

#include "common/cell/exchange_layout.h"
#include "common/cell/handover.h"
#include "common/model_spec/model_spec.h"
#include "common/plan/plan.h"
#include "common/plan/pool.h"
#include "common/plan/traffic.h"
#include "common/step_protocol/control_block.h"
#include "common/wire/bucket_form.h"

namespace ganymede::shm {
namespace {

using Shape = std::vector<std::int64_t>;

Entry entry(const std::string& name, ElementType type, Shape shape) { return {name, type, std::move(shape), 0}; }

Layout one_array(const std::string& name, ElementType type, std::int64_t elements) {
  return lay_out(name, {entry("values", type, {elements})});
}

std::int64_t expert_count_elements(const config::Config& config) {
  std::int64_t elements = 0;
  for (const model_spec::LayerSpec& layer : model_spec::build(config.model).layers) {
    if (layer.moe) elements += config.model.experts;
  }
  return std::max<std::int64_t>(elements, 1);
}

/// Of the redo area: the master's, then one for each column of state.
std::int64_t redo_rows(const placement::Placement& placement) {
  return static_cast<std::int64_t>(placement.columns.size()) + 1;
}

}  // namespace

std::int64_t side_slots(const config::Config& config, const placement::Placement& placement) {
  constexpr std::int64_t most = (1 << 24) - 1;  // an image flag has 24 bits for the slot
  double share = std::ceil(config.checkpoint.side_fraction * static_cast<double>(placement.chunks.size()));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(share), 4, most);
}

Layout control_layout(const config::Config& config, const placement::Placement& placement) {
  auto buckets = static_cast<std::int64_t>(placement.buckets.size());
  return lay_out("control", {entry("block", ElementType::u8, {sizeof(step_protocol::ControlBlock)}),
                             entry("gradients_ready", ElementType::u64, {buckets}),
                             entry("working_copy_ready", ElementType::u64, {buckets}),
                             entry("expert_counts", ElementType::i64, {expert_count_elements(config)}),
                             entry("services", ElementType::u64, {4, sizeof(step_protocol::ServiceWords) / 8})});
}

Layout master_layout(const placement::Placement& placement) {
  return one_array("master", ElementType::f32, placement.shard_elements);
}

Layout gradients_layout(const placement::Placement& placement) {
  return one_array("gradients", ElementType::f32, placement.shard_elements);
}

Layout working_layout(const config::Config& config, const placement::Placement& placement) {
  return one_array("working", ElementType::u8, wire::working_form(config, placement).bytes);
}

std::string state_name(std::uint64_t epoch) { return fmt::format("state.{}", epoch); }
std::string matrices_name(std::uint64_t epoch) { return fmt::format("matrices.{}", epoch); }
std::string side_name(std::uint64_t epoch) { return fmt::format("side.{}", epoch); }

Layout state_layout(const placement::Placement& placement, std::uint64_t epoch) {
  auto buckets = static_cast<std::int64_t>(placement.buckets.size());
  auto parameters = static_cast<std::int64_t>(placement.parameters.size());
  auto columns = static_cast<std::int64_t>(placement.columns.size());
  std::vector<Entry> entries = {
      entry("words", ElementType::u64, {sizeof(step_protocol::EpochWords) / 8}), entry("ready", ElementType::u64, {1}),
      entry("began", ElementType::u64, {parameters, columns}), entry("matrices_sent", ElementType::u64, {buckets}),
      entry("matrices_returned", ElementType::u64, {buckets})};
  if (placement.reductions.elements > 0)
    entries.push_back(entry("reductions", ElementType::f64, {placement.reductions.elements}));
  std::size_t slots = 0;
  for (std::int64_t elements : placement.columns) {
    entries.push_back(entry(fmt::format("slot.{}", slots++), ElementType::f32, {elements}));
  }
  entries.push_back(entry("strips", ElementType::u64, {placement.strips, sizeof(step_protocol::StripWords) / 8}));
  entries.push_back(
      entry("redo", ElementType::f32, {placement.strips, redo_rows(placement), placement::tile_elements}));
  return lay_out(state_name(epoch), std::move(entries));
}

Layout matrices_layout(const config::Config& config, const placement::Placement& placement, std::uint64_t epoch) {
  HandoverRoom handed = handover_room(config, placement);
  return lay_out(matrices_name(epoch), {entry("sent", ElementType::f32, {placement.matrix_elements}),
                                        entry("returned", ElementType::f32, {placement.matrix_elements}),
                                        entry("handover", ElementType::u64, {sizeof(HandoverWords) / 8}),
                                        entry("handover_in", ElementType::f32, {handed.elements}),
                                        entry("handover_out", ElementType::f32, {handed.elements}),
                                        entry("handover_rows_in", ElementType::f32, {handed.row_values}),
                                        entry("handover_rows_out", ElementType::f32, {handed.row_values}),
                                        entry("handover_parameter", ElementType::u64, {handed.matrices})});
}

Layout arena_layout(const config::Config& config, const placement::Placement& placement) {
  int rows = plan::micro_batch_rows(config, placement::rows_of(config, placement.rank).count);
  std::int64_t slots = std::int64_t{plan::offloaded_layers(config)} * rows;
  return one_array("arena", ElementType::u8, slots * plan::hidden_bytes(config));
}

Layout batches_layout(const config::Config& config, const placement::Placement& placement) {
  std::vector<Entry> entries;
  auto add = [&](const std::string& prefix, std::int64_t slots, std::int64_t rows) {
    entries.push_back(entry(prefix + "words", ElementType::u64, {slots}));
    entries.push_back(entry(prefix + "header", ElementType::u64, {slots, 8}));
    for (const char* name : {"tokens", "targets", "documents"}) {
      entries.push_back(entry(prefix + name, ElementType::i32, {slots, rows, config.data.seq_len}));
    }
  };
  add("", config.data.slots, placement::rows_of(config, placement.rank).count);
  add("validation_", 1, validation_rows(config));
  return lay_out("batches", std::move(entries));
}

Layout side_layout(const config::Config& config, const placement::Placement& placement, std::uint64_t epoch) {
  auto chunks = static_cast<std::int64_t>(placement.chunks.size());
  return lay_out(side_name(epoch),
                 {entry("read_marks", ElementType::u64, {chunks}), entry("image_flags", ElementType::u64, {chunks}),
                  entry("images", ElementType::f32,
                        {side_slots(config, placement), redo_rows(placement), placement::chunk_elements})});
}

std::vector<Layout> epoch_layouts(const config::Config& config, const placement::Placement& placement,
                                  std::uint64_t epoch) {
  std::vector<Layout> layouts = {state_layout(placement, epoch), side_layout(config, placement, epoch)};
  if (placement.matrix_elements > 0 || handover_room(config, placement).elements > 0) {
    layouts.push_back(matrices_layout(config, placement, epoch));
  }
  if (plan::pool_is_published(config)) layouts.push_back(pool_layout(plan::pool_bytes(config, placement), epoch));
  return layouts;
}

std::vector<Layout> cell_layouts(const config::Config& config, const placement::Placement& placement,
                                 std::uint64_t epoch) {
  std::vector<Layout> layouts = {control_layout(config, placement), master_layout(placement),
                                 working_layout(config, placement), gradients_layout(placement),
                                 arena_layout(config, placement),   batches_layout(config, placement)};
  for (Layout& layout : epoch_layouts(config, placement, epoch)) layouts.push_back(std::move(layout));
  if (plan::pool_is_published(config)) layouts.push_back(exchange_layout());
  return layouts;
}

int validation_rows(const config::Config& config) {
  return (config.validation.rows + config.parallel.ranks - 1) / config.parallel.ranks;
}

}  // namespace ganymede::shm
