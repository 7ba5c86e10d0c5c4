#include "services/optimizer/matrix_update.h"

#include <algorithm>
#include <vector>

#include "common/base/error.h"
#include "common/os/futex.h"
#include "services/optimizer/migration.h"

namespace ganymede::optimizer {
namespace {

std::int64_t row_slots(const GanymedeOptimizer& table) {
  return std::count_if(table.slots, table.slots + table.slot_count,
                       [](const GanymedeStateSlot& slot) { return slot.shape == GANYMEDE_PER_ROW; });
}

/// A plugin's view of the per-row state of one matrix: a run of rows for each slot, where the exchange has the slots of
/// each row.
class RowState {
 public:
  RowState(const GanymedeOptimizer& table, const float* values, std::int64_t rows)
      : rows_(rows), slots_(row_slots(table)), old_(slots_ * rows), new_(old_.size()) {
    std::int64_t next = 0;
    for (std::uint32_t slot = 0; slot < table.slot_count; ++slot) {
      bool per_row = table.slots[slot].shape == GANYMEDE_PER_ROW;
      row_state.push_back(per_row ? &old_[next * rows] : nullptr);
      new_row_state.push_back(per_row ? &new_[next * rows] : nullptr);
      for (std::int64_t row = 0; per_row && row < rows; ++row) old_[next * rows + row] = values[row * slots_ + next];
      next += per_row ? 1 : 0;
    }
  }
  void store(float* values) const {
    for (std::int64_t slot = 0; slot < slots_; ++slot)
      for (std::int64_t row = 0; row < rows_; ++row) values[row * slots_ + slot] = new_[slot * rows_ + row];
  }

  std::vector<const float*> row_state;
  std::vector<float*> new_row_state;

 private:
  std::int64_t rows_, slots_;
  std::vector<float> old_, new_;
};

HandedOver handed_over(const shm::Handover& handover) {
  HandedOver batch;
  batch.rows = static_cast<std::int64_t>(handover.words->rows.load(std::memory_order_acquire));
  batch.cols = static_cast<std::int64_t>(handover.words->columns.load(std::memory_order_acquire));
  batch.count = static_cast<std::int64_t>(handover.words->count.load(std::memory_order_acquire));
  auto room = static_cast<std::int64_t>(handover.in.size());
  if (batch.rows < 1 || batch.cols < 1 || batch.count < 1 || batch.rows > room || batch.cols > room / batch.rows ||
      batch.count > room / batch.rows / batch.cols) {
    fail("the worker hands over {} matrices of {} x {}, but the segment has room for {} elements: start the run again",
         batch.count, batch.rows, batch.cols, room);
  }
  return batch;
}

}  // namespace

MatrixUpdate::MatrixUpdate(const placement::Placement& placement, Tables tables, const CellMemory& memory)
    : placement_(placement), tables_(std::move(tables)), memory_(memory) {}

void MatrixUpdate::check(const shm::Handover& handover, const HandedOver& batch) const {
  auto room = static_cast<std::int64_t>(handover.parameter.size());
  std::int64_t per_row = 0;
  bool sound = batch.count <= room;
  for (std::int64_t i = 0; sound && i < batch.count; ++i) {
    std::uint64_t parameter = handover.parameter[i].load(std::memory_order_acquire);
    sound = parameter < placement_.parameters.size() && parameter < std::uint64_t{1} << 31;
    if (!sound) break;
    const model_spec::ParameterSpec& spec = placement_.parameters[parameter];
    const placement::OptimizerFacts& optimizer = placement_.update.optimizer_of(static_cast<int>(parameter));
    per_row = static_cast<std::int64_t>(optimizer.row_slots.size());
    sound = optimizer.updates_matrix && spec.rows() == batch.rows && spec.row_elements() == batch.cols;
  }
  if (sound && batch.count * batch.rows * per_row <= static_cast<std::int64_t>(handover.rows_in.size())) return;
  fail("the worker hands over {} matrices of {} x {} to be updated that are none of the run's: start the run again",
       batch.count, batch.rows, batch.cols);
}

const GanymedeOptimizer& MatrixUpdate::table_of(int parameter) const {
  auto group = static_cast<std::size_t>(placement_.update.of_parameter[static_cast<std::size_t>(parameter)]);
  return *tables_[static_cast<std::size_t>(placement_.update.groups[group].optimizer)];
}

StepValues MatrixUpdate::values_of(int parameter, std::uint64_t step) const {
  const step_protocol::DecisionRecord& record = memory_.control->record_of(step);
  if (record.step != step || !record.intact())
    fail("the decision record of step {} is damaged: start again from the last checkpoint", step);
  auto group = static_cast<std::size_t>(placement_.update.of_parameter[static_cast<std::size_t>(parameter)]);
  return {tables_, placement_.update, group, record};
}

/// The plugin's code. Does not throw.
int MatrixUpdate::update(const shm::Handover& handover, const HandedOver& batch, std::int64_t index,
                         const StepValues& values) const {
  auto parameter = static_cast<int>(handover.parameter[index].load(std::memory_order_acquire));
  const GanymedeOptimizer& table = table_of(parameter);
  GanymedeStep step = values.step();
  if (!memory_.began.empty())
    step.step -= youngest_began({&placement_, tables_, memory_.state, memory_.began}, parameter);
  std::int64_t at = index * batch.rows * row_slots(table);
  RowState state(table, handover.rows_in.data() + at, batch.rows);
  GanymedeMatrix matrix{};
  matrix.size = sizeof(matrix);
  matrix.slots = table.slot_count;
  matrix.rows = static_cast<std::uint64_t>(batch.rows);
  matrix.columns = static_cast<std::uint64_t>(batch.cols);
  matrix.orthogonal = handover.out.data() + index * batch.rows * batch.cols;
  matrix.row_state = state.row_state.data();
  matrix.new_row_state = state.new_row_state.data();
  int code = table.update_matrix(&step, &matrix);
  if (code == 0) state.store(handover.rows_out.data() + at);
  return code;
}

void MatrixUpdate::run(const shm::Handover& handover, const HandedOver& batch, const RunTasks& run_tasks) {
  check(handover, batch);
  auto parameter = [&](std::size_t i) {
    return static_cast<int>(handover.parameter[i].load(std::memory_order_acquire));
  };
  std::uint64_t step = handover.words->step.load(std::memory_order_acquire);
  std::vector<StepValues> values;
  std::vector<int> codes(static_cast<std::size_t>(batch.count), 0);
  for (std::size_t i = 0; i < codes.size(); ++i) values.push_back(values_of(parameter(i), step));
  run_tasks(batch.count, [&](std::int64_t i) {
    auto index = static_cast<std::size_t>(i);
    codes[index] = update(handover, batch, i, values[index]);
  });
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == 0) continue;
    fail("optimizer plugin '{}' could not update the matrix {} in step {} (code {}): see the plugin's documentation",
         table_of(parameter(i)).name, placement_.parameters[static_cast<std::size_t>(parameter(i))].name, step,
         codes[i]);
  }
}

bool answer_handover(const shm::Handover& handover, const Orthogonalise& orthogonalise, MatrixUpdate* update,
                     const RunTasks& run_tasks) {
  std::uint64_t number = handover.words->request.load(std::memory_order_acquire);
  if (handover.words->answer.load(std::memory_order_acquire) == number) return false;
  HandedOver batch = handed_over(handover);
  std::uint64_t work = handover.words->work.load(std::memory_order_acquire);
  bool orthogonalises = (work & shm::handover_orthogonalise) != 0, updates = (work & shm::handover_update) != 0;
  if ((orthogonalises && !orthogonalise) || (updates && update == nullptr) || (!orthogonalises && !updates))
    fail("the worker hands over matrices for what this server does not do ({}): start the run again", work);
  std::optional<std::int64_t> bad;
  float *in = handover.in.data(), *out = handover.out.data();
  if (orthogonalises) {
    auto places = newton_schulz::side_by_side(in, out, batch.count, batch.rows, batch.cols);
    bad = orthogonalise({places, batch.rows, batch.cols});
  } else {
    std::copy_n(in, batch.count * batch.rows * batch.cols, out);
  }
  if (updates && !bad) update->run(handover, batch, run_tasks);
  handover.words->overflowed.store(bad ? static_cast<std::uint64_t>(*bad) + 1 : 0, std::memory_order_release);
  os::store_and_wake(handover.words->answer, number);
  return true;
}

}  // namespace ganymede::optimizer
