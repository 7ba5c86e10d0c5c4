#include "services/worker/engine/cell.h"

#include <algorithm>
#include <string>

#include "common/cell/layouts.h"
#include "common/placement/placement.h"

namespace ganymede::worker {
namespace {

Batches map_batches(shm::Segment& segment, const std::string& prefix, int rows, int seq_len) {
  return {segment.span<step_protocol::Word>(prefix + "words"),
          segment.span<std::uint64_t>(prefix + "header"),
          segment.span<std::int32_t>(prefix + "tokens"),
          segment.span<std::int32_t>(prefix + "targets"),
          segment.span<std::int32_t>(prefix + "documents"),
          rows,
          seq_len};
}

at::Tensor widened(std::span<const std::int32_t> values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

}  // namespace

model::Row Batches::row(int slot, int index) const {
  auto length = static_cast<std::size_t>(seq_len);
  std::size_t first = (static_cast<std::size_t>(slot) * rows + index) * length;
  model::Row row;
  row.tokens = widened(tokens.subspan(first, length));
  row.targets = widened(targets.subspan(first, length));
  std::span<const std::int32_t> document = documents.subspan(first, length);
  for (std::size_t i = 0; i < length; ++i) {
    if (i == 0 || document[i] != document[i - 1]) row.document_begin.push_back(static_cast<std::int64_t>(i));
  }
  row.document_begin.push_back(seq_len);
  return row;
}

std::uint64_t Batches::own_loss_tokens(int slot) const {
  std::size_t count = static_cast<std::size_t>(rows) * seq_len;
  auto own = targets.subspan(static_cast<std::size_t>(slot) * count, count);
  return static_cast<std::uint64_t>(std::count_if(own.begin(), own.end(), [](std::int32_t t) { return t >= 0; }));
}

Cell map_cell(service::Context& context, std::uint64_t epoch) {
  const config::Config& config = context.config_of(epoch);
  const placement::Placement& placement = context.placement_of(epoch);
  shm::Segment& batches = context.segment("batches");
  Cell cell;
  cell.control = context.control();
  cell.epoch_number = epoch;
  cell.epoch = service::epoch_control(context, epoch);
  cell.working = context.segment("working").span<std::byte>("values");
  cell.working_form = wire::working_form(config, placement);
  cell.gradients = context.segment("gradients").span<float>("values");
  if (placement.matrix_elements > 0) {
    cell.sent = context.segment(shm::matrices_name(epoch)).span<const float>("sent");
    cell.returned = context.segment(shm::matrices_name(epoch)).span<float>("returned");
  }
  if (shm::handover_room(config, placement).elements > 0)
    cell.handover = shm::handover_of(context.segment(shm::matrices_name(epoch)));
  cell.arena = context.segment("arena").span<std::byte>("values");
  cell.train = map_batches(batches, "", placement::rows_of(config, context.rank()).count, config.data.seq_len);
  cell.validation = map_batches(batches, "validation_", shm::validation_rows(config), config.data.seq_len);
  return cell;
}

}  // namespace ganymede::worker
