#include "services/worker/engine/matrix_operations.h"

#include <algorithm>
#include <cstring>

#include "common/base/error.h"
#include "common/newton_schulz/settings.h"
#include "common/os/futex.h"
#include "common/plan/matrix_updates.h"
#include "services/worker/engine/matrix_places.h"

namespace ganymede::worker {

using placement::Matrix;
using placement::MatrixBatch;
using placement::MatrixPart;
using plan::BufferKind;
using plan::Operation;
using plan::OperationKind;

namespace {

void copy(const float* from, std::int64_t elements, float* to) {
  std::memcpy(to, from, static_cast<std::size_t>(elements) * sizeof(float));
}

std::vector<std::size_t> in_bytes(const std::vector<std::int64_t>& elements) {
  std::vector<std::size_t> bytes;
  for (std::int64_t one : elements) bytes.push_back(static_cast<std::size_t>(one) * sizeof(float));
  return bytes;
}

}  // namespace

MatrixOperations::MatrixOperations(Workbench& bench, const plan::StepPlan& plan)
    : bench_(bench),
      plan_(plan),
      matrices_(placement::matrices_of(bench.placement)),
      settings_(newton_schulz::settings_of(bench.config.newton_schulz)),
      products_(bench.config.newton_schulz.dtype == config::Dtype::bf16 ? newton_schulz::Element::bf16
                                                                        : newton_schulz::Element::fp32) {
  for (const placement::OwnedRange& range : bench.placement.owned)
    own_place_.emplace(range.parameter, OwnPlace{range.matrix_offset, range.row_values_offset});
}

void MatrixOperations::install(OperationTable& table) {
  table[OperationKind::update_send] = [this](const Operation& o, int) { send(o); };
  table[OperationKind::orthogonalise] = [this](const Operation& o, int) { orthogonalise(o); };
  table[OperationKind::update_return] = [this](const Operation& o, int) { bring_back(o); };
}

std::span<float> MatrixOperations::buffer(const Operation& operation, BufferKind kind) const {
  int index = find_buffer(plan_, operation, kind, operation.bucket, -1);
  if (index < 0) return {};
  const plan::Buffer& found = plan_.buffers[static_cast<std::size_t>(index)];
  return {reinterpret_cast<float*>(bench_.pool + found.offset), static_cast<std::size_t>(found.bytes) / sizeof(float)};
}

RowsAt<const float> MatrixOperations::own_rows(const Matrix& matrix) const {
  const OwnPlace& place = own_place_.at(matrix.parameter);
  return {bench_.cell.sent.data() + place.rows, bench_.cell.sent.data() + place.row_values};
}

RowsAt<float> MatrixOperations::own_result(const Matrix& matrix) {
  const OwnPlace& place = own_place_.at(matrix.parameter);
  return {bench_.cell.returned.data() + place.rows, bench_.cell.returned.data() + place.row_values};
}

/// After a kill the optimizer server may have begun with what there is already: it stays as it is.
bool MatrixOperations::returned_already(int bucket) const {
  const step_protocol::Word& word = bench_.cell.epoch.matrices_returned[static_cast<std::size_t>(bucket)];
  return word.load(std::memory_order_acquire) == bench_.pass.step;
}

/// Of this rank's own rows; without any there is nothing to wait for.
void MatrixOperations::await_first_phase(int bucket) {
  int own = bench_.placement.buckets[static_cast<std::size_t>(bucket)].index_in_group;
  const auto& all = matrices_[static_cast<std::size_t>(bucket)].matrices;
  if (std::none_of(all.begin(), all.end(), [&](const Matrix& matrix) { return part_of(matrix, own) != nullptr; }))
    return;
  std::uint64_t step = bench_.pass.step;
  bench_.surroundings.wait(
      WaitKind::update, bench_.cell.epoch.matrices_sent[static_cast<std::size_t>(bucket)],
      [step](std::uint64_t value) { return value == step; }, "the first phase of a bucket's matrices");
}

void MatrixOperations::publish(int bucket) {
  os::store_and_wake(bench_.cell.epoch.matrices_returned[static_cast<std::size_t>(bucket)], bench_.pass.step);
}

void MatrixOperations::send(const Operation& operation) {
  if (skipped()) return;
  await_first_phase(operation.bucket);
  const placement::Bucket& bucket = bench_.placement.buckets[static_cast<std::size_t>(operation.bucket)];
  const placement::BucketMatrices& all = matrices_[static_cast<std::size_t>(operation.bucket)];
  int own = bucket.index_in_group;
  std::span<float> out = buffer(operation, BufferKind::rows_out), in = buffer(operation, BufferKind::rows_in);
  for_travelling(all, own, true, [&](int, const Matrix& matrix, const MatrixPart& part, std::int64_t at) {
    copy_rows(own_rows(matrix), matrix, part, travelling_at(out.data() + at, matrix, part));
  });
  auto sent = in_bytes(all.sent), received = in_bytes(all.received);
  bench_.surroundings.wait(bench_.communicators.update(bucket).all_to_all(
      std::as_bytes(out).first(sent.back()), sent, std::as_writable_bytes(in).first(received.back()), received,
      {plan::name(bucket.kind), "update_send"}));
  std::span<float> whole = buffer(operation, BufferKind::matrices);
  std::map<int, Place> places = places_of(all, own);
  for_travelling(all, own, false, [&](int index, const Matrix& matrix, const MatrixPart& part, std::int64_t at) {
    copy_rows(travelling_at<const float>(in.data() + at, matrix, part), matrix, part,
              whole_at(whole.data(), places.at(index), matrix, part));
  });
  for (const auto& [index, place] : places) {
    const Matrix& matrix = all.matrices[static_cast<std::size_t>(index)];
    const MatrixPart* part = part_of(matrix, own);
    if (part != nullptr) copy_rows(own_rows(matrix), matrix, *part, whole_at(whole.data(), place, matrix, *part));
  }
}

/// To be orthogonalised, or as they were orthogonalised here, to be updated. Returns as newton_schulz::orthogonalise.
std::optional<std::int64_t> MatrixOperations::hand_over(const Work& work, int bucket, bool orthogonalise) {
  const shm::Handover& handover = bench_.cell.handover;
  std::int64_t elements = work.rows * work.columns, values = work.rows * work.row_slots;
  for (float* to = handover.in.data(); const newton_schulz::Place& place : work.places) {
    copy(orthogonalise ? place.in : place.out, elements, to);
    to += elements;
  }
  if (work.updater >= 0) {
    const std::vector<Matrix>& all = matrices_[static_cast<std::size_t>(bucket)].matrices;
    for (std::size_t i = 0; i < work.matrices.size(); ++i) {
      auto parameter = static_cast<std::uint64_t>(all[static_cast<std::size_t>(work.matrices[i])].parameter);
      handover.parameter[i].store(parameter, std::memory_order_release);
      copy(work.row_values[i], values, handover.rows_in.data() + static_cast<std::int64_t>(i) * values);
    }
  }
  handover.words->work.store(
      (orthogonalise ? shm::handover_orthogonalise : 0) | (work.updater >= 0 ? shm::handover_update : 0),
      std::memory_order_release);
  handover.words->step.store(bench_.pass.step, std::memory_order_release);
  handover.words->rows.store(static_cast<std::uint64_t>(work.rows), std::memory_order_release);
  handover.words->columns.store(static_cast<std::uint64_t>(work.columns), std::memory_order_release);
  handover.words->count.store(work.places.size(), std::memory_order_release);
  std::uint64_t number = handover.words->request.load(std::memory_order_acquire) + 1;
  os::store_and_wake(handover.words->request, number);
  std::string awaited =
      work.updater < 0
          ? "the optimizer server, which orthogonalises matrices,"
          : fmt::format("update_matrix of optimizer plugin '{}' to return (mend the plugin, or take another)",
                        bench_.placement.update.optimizers[static_cast<std::size_t>(work.updater)].name);
  bench_.surroundings.wait(
      WaitKind::update, handover.words->answer, [number](std::uint64_t value) { return value == number; },
      awaited.c_str());
  for (const float* from = handover.out.data(); const newton_schulz::Place& place : work.places) {
    copy(from, elements, place.out);
    from += elements;
  }
  for (std::size_t i = 0; work.updater >= 0 && i < work.matrices.size(); ++i)
    copy(handover.rows_out.data() + static_cast<std::int64_t>(i) * values, values, work.new_row_values[i]);
  std::uint64_t overflowed = handover.words->overflowed.load(std::memory_order_acquire);
  if (overflowed == 0) return {};
  return static_cast<std::int64_t>(overflowed) - 1;
}

void MatrixOperations::run(const Work& work, const placement::Bucket& bucket) {
  bool here = bench_.config.newton_schulz.where == config::OrthogonaliseWhere::worker;
  auto b = static_cast<std::size_t>(&bucket - bench_.placement.buckets.data());
  std::optional<std::int64_t> bad;
  if (here)
    bad = newton_schulz::orthogonalise(products_, {work.places, work.rows, work.columns}, settings_, workspace_);
  if (!bad && (!here || work.updater >= 0)) bad = hand_over(work, static_cast<int>(b), !here);
  if (!bad) return;
  int index = work.matrices[static_cast<std::size_t>(*bad)];
  int parameter = matrices_[b].matrices[static_cast<std::size_t>(index)].parameter;
  fail(
      "the momentum of {} could not be orthogonalised in step {}: the iteration overflowed; choose other "
      "newton_schulz.coefficients or newton_schulz.dtype = \"fp32\"",
      bench_.placement.parameters[static_cast<std::size_t>(parameter)].name, bench_.pass.step);
}

/// Matrices that lie whole in this rank's segment, where they lie. What the optimizer server takes has room for some.
void MatrixOperations::orthogonalise_whole(int bucket, const MatrixBatch& batch) {
  const auto& all = matrices_[static_cast<std::size_t>(bucket)].matrices;
  bool handed_over = bench_.config.newton_schulz.where == config::OrthogonaliseWhere::optimizer || batch.updater >= 0;
  std::size_t count = batch.matrices.size(), size = count;
  if (handed_over)
    size = static_cast<std::size_t>(plan::batch_size(batch.rows, batch.columns, static_cast<std::int64_t>(count)));
  for (std::size_t first = 0; first < count; first += size) {
    Work work(batch, std::span(batch.matrices).subspan(first, std::min(size, count - first)));
    for (int index : work.matrices) {
      const Matrix& matrix = all[static_cast<std::size_t>(index)];
      RowsAt<const float> own = own_rows(matrix);
      RowsAt<float> result = own_result(matrix);
      work.places.push_back({own.elements, result.elements});
      work.row_values.push_back(own.row_values);
      work.new_row_values.push_back(result.row_values);
    }
    run(work, bench_.placement.buckets[static_cast<std::size_t>(bucket)]);
  }
}

/// Of matrices that came from several members, in the buffers of the operation.
void MatrixOperations::orthogonalise_gathered(const Operation& operation, const MatrixBatch& batch,
                                              const std::map<int, Place>& places) {
  const float* in = buffer(operation, BufferKind::matrices).data();
  float* out = buffer(operation, BufferKind::orthogonal).data();
  Work work(batch, batch.matrices);
  for (int index : batch.matrices) {
    const Place& place = places.at(index);
    work.places.push_back({in + place.elements, out + place.elements});
    work.row_values.push_back(in + place.row_values);
    work.new_row_values.push_back(out + place.row_values);
  }
  run(work, bench_.placement.buckets[static_cast<std::size_t>(operation.bucket)]);
}

void MatrixOperations::orthogonalise(const Operation& operation) {
  if (skipped()) return;
  int own = bench_.placement.buckets[static_cast<std::size_t>(operation.bucket)].index_in_group;
  const placement::BucketMatrices& all = matrices_[static_cast<std::size_t>(operation.bucket)];
  if (!returned_already(operation.bucket)) {
    await_first_phase(operation.bucket);
    for (const MatrixBatch& batch : placement::batches_of(all, own, true)) orthogonalise_whole(operation.bucket, batch);
  }
  std::map<int, Place> places = places_of(all, own);
  for (const MatrixBatch& batch : placement::batches_of(all, own, false))
    orthogonalise_gathered(operation, batch, places);
  if (!all.travels()) publish(operation.bucket);
}

void MatrixOperations::bring_back(const Operation& operation) {
  if (skipped()) return;
  const placement::Bucket& bucket = bench_.placement.buckets[static_cast<std::size_t>(operation.bucket)];
  const placement::BucketMatrices& all = matrices_[static_cast<std::size_t>(operation.bucket)];
  int own = bucket.index_in_group;
  std::span<float> out = buffer(operation, BufferKind::rows_out), in = buffer(operation, BufferKind::rows_in);
  const float* whole = buffer(operation, BufferKind::orthogonal).data();
  std::map<int, Place> places = places_of(all, own);
  for_travelling(all, own, false, [&](int index, const Matrix& matrix, const MatrixPart& part, std::int64_t at) {
    copy_rows(whole_at(whole, places.at(index), matrix, part), matrix, part,
              travelling_at(in.data() + at, matrix, part));
  });
  auto sent = in_bytes(all.received), received = in_bytes(all.sent);
  bench_.surroundings.wait(bench_.communicators.update(bucket).all_to_all(
      std::as_bytes(in).first(sent.back()), sent, std::as_writable_bytes(out).first(received.back()), received,
      {plan::name(bucket.kind), "update_return"}));
  if (returned_already(operation.bucket)) return;
  for_travelling(all, own, true, [&](int, const Matrix& matrix, const MatrixPart& part, std::int64_t at) {
    copy_rows(travelling_at<const float>(out.data() + at, matrix, part), matrix, part, own_result(matrix));
  });
  for (const auto& [index, place] : places) {
    const Matrix& matrix = all.matrices[static_cast<std::size_t>(index)];
    const MatrixPart* part = part_of(matrix, own);
    if (part != nullptr) copy_rows(whole_at(whole, place, matrix, *part), matrix, *part, own_result(matrix));
  }
  publish(operation.bucket);
}

}  // namespace ganymede::worker
