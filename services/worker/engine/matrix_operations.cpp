#include "services/worker/engine/matrix_operations.h"

#include <algorithm>
#include <cstring>

#include "common/base/error.h"
#include "common/os/futex.h"
#include "common/plan/matrix_updates.h"

namespace ganymede::worker {

using placement::Matrix;
using placement::MatrixBatch;
using placement::MatrixPart;
using plan::BufferKind;
using plan::Operation;
using plan::OperationKind;

namespace {

newton_schulz::Settings settings_of(const config::NewtonSchulz& config) {
  newton_schulz::Settings settings;
  settings.schedule = newton_schulz::parse_schedule("newton_schulz.coefficients", config.coefficients);
  settings.form = static_cast<newton_schulz::Form>(config.form);
  return settings;
}

const MatrixPart* part_of(const Matrix& matrix, int member) {
  auto found =
      std::find_if(matrix.parts.begin(), matrix.parts.end(), [&](auto& part) { return part.member == member; });
  return found == matrix.parts.end() ? nullptr : &*found;
}

void copy(const float* from, std::int64_t elements, float* to) {
  std::memcpy(to, from, static_cast<std::size_t>(elements) * sizeof(float));
}

/// Calls visit(matrix, part, offset in the buffer) for each part of what travels to (`there`) or from other members, in
/// the order in which it lies in the buffers of the exchange.
template <class Visit>
void for_travelling(const placement::BucketMatrices& bucket, int own, bool there, const Visit& visit) {
  const std::vector<std::int64_t>& boundaries = there ? bucket.sent : bucket.received;
  std::vector<std::int64_t> next(boundaries.begin(), boundaries.end());
  for (std::size_t i = 0; i < bucket.matrices.size(); ++i) {
    const Matrix& matrix = bucket.matrices[i];
    for (const MatrixPart& part : matrix.parts) {
      bool mine = there ? part.member == own : matrix.owner == own;
      if (part.member == matrix.owner || !mine) continue;
      std::int64_t& at = next[static_cast<std::size_t>(there ? matrix.owner : part.member)];
      visit(static_cast<int>(i), part, at);
      at += part.rows * matrix.columns;
    }
  }
}

/// Where each matrix of this member that came from several begins in its buffer: batch after batch.
std::map<int, std::int64_t> places_of(const placement::BucketMatrices& bucket, int own) {
  std::map<int, std::int64_t> places;
  std::int64_t at = 0;
  for (const MatrixBatch& batch : placement::batches_of(bucket, own, false)) {
    for (int matrix : batch.matrices) {
      places[matrix] = at;
      at += batch.rows * batch.columns;
    }
  }
  return places;
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
      settings_(settings_of(bench.config.newton_schulz)),
      products_(bench.config.newton_schulz.dtype == config::Dtype::bf16 ? newton_schulz::Element::bf16
                                                                        : newton_schulz::Element::fp32) {
  for (const placement::OwnedRange& range : bench.placement.owned)
    own_offset_.emplace(range.parameter, range.matrix_offset);
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

const float* MatrixOperations::own_rows(const Matrix& matrix) const {
  return bench_.cell.sent.data() + own_offset_.at(matrix.parameter);
}

float* MatrixOperations::own_result(const Matrix& matrix) {
  return bench_.cell.returned.data() + own_offset_.at(matrix.parameter);
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
  for_travelling(all, own, true, [&](int index, const MatrixPart& part, std::int64_t at) {
    const Matrix& matrix = all.matrices[static_cast<std::size_t>(index)];
    copy(own_rows(matrix), part.rows * matrix.columns, out.data() + at);
  });
  auto sent = in_bytes(all.sent), received = in_bytes(all.received);
  bench_.surroundings.wait(bench_.communicators.update(bucket).all_to_all(
      std::as_bytes(out).first(sent.back()), sent, std::as_writable_bytes(in).first(received.back()), received,
      {plan::name(bucket.kind), "update_send"}));
  std::span<float> whole = buffer(operation, BufferKind::matrices);
  std::map<int, std::int64_t> places = places_of(all, own);
  for_travelling(all, own, false, [&](int index, const MatrixPart& part, std::int64_t at) {
    std::int64_t columns = all.matrices[static_cast<std::size_t>(index)].columns;
    copy(in.data() + at, part.rows * columns, whole.data() + places.at(index) + part.first_row * columns);
  });
  for (const auto& [index, place] : places) {
    const Matrix& matrix = all.matrices[static_cast<std::size_t>(index)];
    const MatrixPart* part = part_of(matrix, own);
    if (part == nullptr) continue;
    copy(own_rows(matrix), part->rows * matrix.columns, whole.data() + place + part->first_row * matrix.columns);
  }
}

/// newton_schulz.where = optimizer. Returns as newton_schulz::orthogonalise.
std::optional<std::int64_t> MatrixOperations::hand_over(const newton_schulz::Batch& batch) {
  const shm::Handover& handover = bench_.cell.handover;
  std::int64_t elements = batch.rows * batch.cols;
  for (float* to = handover.in.data(); const newton_schulz::Place& place : batch.matrices) {
    copy(place.in, elements, to);
    to += elements;
  }
  handover.words->rows.store(static_cast<std::uint64_t>(batch.rows), std::memory_order_release);
  handover.words->columns.store(static_cast<std::uint64_t>(batch.cols), std::memory_order_release);
  handover.words->count.store(batch.matrices.size(), std::memory_order_release);
  std::uint64_t number = handover.words->request.load(std::memory_order_acquire) + 1;
  os::store_and_wake(handover.words->request, number);
  bench_.surroundings.wait(
      WaitKind::update, handover.words->answer, [number](std::uint64_t value) { return value == number; },
      "matrices that the optimizer server orthogonalises");
  for (const float* from = handover.out.data(); const newton_schulz::Place& place : batch.matrices) {
    copy(from, elements, place.out);
    from += elements;
  }
  std::uint64_t overflowed = handover.words->overflowed.load(std::memory_order_acquire);
  if (overflowed == 0) return {};
  return static_cast<std::int64_t>(overflowed) - 1;
}

void MatrixOperations::run(const newton_schulz::Batch& batch, const placement::Bucket& bucket,
                           std::span<const int> matrices) {
  bool here = bench_.config.newton_schulz.where == config::OrthogonaliseWhere::worker;
  auto bad = here ? newton_schulz::orthogonalise(products_, batch, settings_, workspace_) : hand_over(batch);
  if (!bad) return;
  auto b = static_cast<std::size_t>(&bucket - bench_.placement.buckets.data());
  int parameter = matrices_[b].matrices[static_cast<std::size_t>(matrices[static_cast<std::size_t>(*bad)])].parameter;
  fail(
      "the momentum of {} could not be orthogonalised in step {}: the iteration overflowed; choose other "
      "newton_schulz.coefficients or newton_schulz.dtype = \"fp32\"",
      bench_.placement.parameters[static_cast<std::size_t>(parameter)].name, bench_.pass.step);
}

/// Matrices that lie whole in this rank's segment, where they lie. What the optimizer server takes has room for some.
void MatrixOperations::orthogonalise_whole(int bucket, const MatrixBatch& batch) {
  const auto& all = matrices_[static_cast<std::size_t>(bucket)].matrices;
  std::vector<newton_schulz::Place> places;
  for (int index : batch.matrices) {
    const Matrix& matrix = all[static_cast<std::size_t>(index)];
    places.push_back({own_rows(matrix), own_result(matrix)});
  }
  std::size_t size = places.size();
  if (bench_.config.newton_schulz.where == config::OrthogonaliseWhere::optimizer) {
    size =
        static_cast<std::size_t>(plan::batch_size(batch.rows, batch.columns, static_cast<std::int64_t>(places.size())));
  }
  for (std::size_t first = 0; first < places.size(); first += size) {
    std::size_t together = std::min(size, places.size() - first);
    run({std::span(places).subspan(first, together), batch.rows, batch.columns},
        bench_.placement.buckets[static_cast<std::size_t>(bucket)], std::span(batch.matrices).subspan(first, together));
  }
}

void MatrixOperations::orthogonalise(const Operation& operation) {
  if (skipped()) return;
  const placement::Bucket& bucket = bench_.placement.buckets[static_cast<std::size_t>(operation.bucket)];
  const placement::BucketMatrices& all = matrices_[static_cast<std::size_t>(operation.bucket)];
  if (!returned_already(operation.bucket)) {
    await_first_phase(operation.bucket);
    for (const MatrixBatch& batch : placement::batches_of(all, bucket.index_in_group, true))
      orthogonalise_whole(operation.bucket, batch);
  }
  const float* in = buffer(operation, BufferKind::matrices).data();
  float* out = buffer(operation, BufferKind::orthogonal).data();
  for (const MatrixBatch& batch : placement::batches_of(all, bucket.index_in_group, false)) {
    auto count = static_cast<std::int64_t>(batch.matrices.size());
    run({newton_schulz::side_by_side(in, out, count, batch.rows, batch.columns), batch.rows, batch.columns}, bucket,
        batch.matrices);
    in += batch.elements();
    out += batch.elements();
  }
  if (!all.travels()) publish(operation.bucket);
}

void MatrixOperations::bring_back(const Operation& operation) {
  if (skipped()) return;
  const placement::Bucket& bucket = bench_.placement.buckets[static_cast<std::size_t>(operation.bucket)];
  const placement::BucketMatrices& all = matrices_[static_cast<std::size_t>(operation.bucket)];
  int own = bucket.index_in_group;
  std::span<float> out = buffer(operation, BufferKind::rows_out), in = buffer(operation, BufferKind::rows_in);
  const float* whole = buffer(operation, BufferKind::orthogonal).data();
  std::map<int, std::int64_t> places = places_of(all, own);
  for_travelling(all, own, false, [&](int index, const MatrixPart& part, std::int64_t at) {
    std::int64_t columns = all.matrices[static_cast<std::size_t>(index)].columns;
    copy(whole + places.at(index) + part.first_row * columns, part.rows * columns, in.data() + at);
  });
  auto sent = in_bytes(all.received), received = in_bytes(all.sent);
  bench_.surroundings.wait(bench_.communicators.update(bucket).all_to_all(
      std::as_bytes(in).first(sent.back()), sent, std::as_writable_bytes(out).first(received.back()), received,
      {plan::name(bucket.kind), "update_return"}));
  if (returned_already(operation.bucket)) return;
  for_travelling(all, own, true, [&](int index, const MatrixPart& part, std::int64_t at) {
    const Matrix& matrix = all.matrices[static_cast<std::size_t>(index)];
    copy(out.data() + at, part.rows * matrix.columns, own_result(matrix));
  });
  for (const auto& [index, place] : places) {
    const Matrix& matrix = all.matrices[static_cast<std::size_t>(index)];
    const MatrixPart* part = part_of(matrix, own);
    if (part == nullptr) continue;
    copy(whole + place + part->first_row * matrix.columns, part->rows * matrix.columns, own_result(matrix));
  }
  publish(operation.bucket);
}

}  // namespace ganymede::worker
