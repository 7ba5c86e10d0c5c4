#include "common/plan/matrix_updates.h"

#include <algorithm>
#include <utility>

namespace ganymede::plan {
namespace {

/// Matrices of one bucket and the buffers that they need.
struct Exchange {
  int bucket = -1, layer = -1;
  placement::BucketMatrices matrices;
  bool travels = false;
  std::int64_t work = 0;                        // bytes of what this rank orthogonalises
  std::vector<int> out, in, whole, orthogonal;  // one buffer each; none of no bytes
  std::vector<int> all() const {
    std::vector<int> buffers = out;
    for (const auto* more : {&in, &whole, &orthogonal}) buffers.insert(buffers.end(), more->begin(), more->end());
    return buffers;
  }
};

class Updates {
 public:
  Updates(Builder& builder, int after) : builder_(builder), after_(after) {}
  void add();

 private:
  std::vector<Exchange> exchanges() const;
  std::vector<int> buffer(const Exchange& exchange, BufferKind kind, std::int64_t elements);
  void send(Exchange& exchange);
  void orthogonalise(Exchange& exchange);
  void bring_back(const Exchange& exchange);

  Builder& builder_;
  int after_;
};

std::vector<Exchange> Updates::exchanges() const {
  std::vector<Exchange> all;
  std::vector<placement::BucketMatrices> matrices = placement::matrices_of(builder_.placement);
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (matrices[i].matrices.empty()) continue;
    const placement::Bucket& bucket = builder_.placement.buckets[i];
    Exchange one;
    one.bucket = static_cast<int>(i);
    one.layer = bucket.layer;
    one.travels = matrices[i].travels();
    for (bool whole : {true, false}) {
      for (const auto& batch : placement::batches_of(matrices[i], bucket.index_in_group, whole)) {
        one.work += batch.elements() * 4;
      }
    }
    one.matrices = std::move(matrices[i]);
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<int> Updates::buffer(const Exchange& exchange, BufferKind kind, std::int64_t elements) {
  if (elements == 0) return {};
  std::string text = std::string(name(kind)) + " " + builder_.placement.buckets[exchange.bucket].name;
  return {builder_.new_buffer(kind, text, elements * 4, exchange.bucket, exchange.layer, -1)};
}

void Updates::send(Exchange& exchange) {
  const placement::Bucket& bucket = builder_.placement.buckets[exchange.bucket];
  std::int64_t whole = 0;
  for (const auto& batch : placement::batches_of(exchange.matrices, bucket.index_in_group, false)) {
    whole += batch.elements() + batch.row_values();
  }
  exchange.out = buffer(exchange, BufferKind::rows_out, exchange.matrices.sent.back());
  exchange.in = buffer(exchange, BufferKind::rows_in, exchange.matrices.received.back());
  exchange.whole = buffer(exchange, BufferKind::matrices, whole);
  exchange.orthogonal = buffer(exchange, BufferKind::orthogonal, whole);
  Operation operation{.kind = OperationKind::update_send,
                      .lane = Lane::exchange,
                      .bucket = exchange.bucket,
                      .layer = exchange.layer,
                      .bytes = exchange.matrices.sent.back() * 4,
                      .wire = "fp32"};
  operation.takes = exchange.all();
  if (after_ >= 0) operation.after.push_back(after_);
  builder_.add(std::move(operation));
}

void Updates::orthogonalise(Exchange& exchange) {
  Operation operation{.kind = OperationKind::orthogonalise,
                      .lane = Lane::compute,
                      .bucket = exchange.bucket,
                      .layer = exchange.layer,
                      .bytes = exchange.work};
  operation.uses = exchange.whole;
  operation.uses.insert(operation.uses.end(), exchange.orthogonal.begin(), exchange.orthogonal.end());
  if (after_ >= 0) operation.after.push_back(after_);
  builder_.add(std::move(operation));
}

void Updates::bring_back(const Exchange& exchange) {
  Operation operation{.kind = OperationKind::update_return,
                      .lane = Lane::exchange,
                      .bucket = exchange.bucket,
                      .layer = exchange.layer,
                      .bytes = exchange.matrices.received.back() * 4,
                      .wire = "fp32"};
  operation.uses = exchange.all();
  operation.after.push_back(builder_.next() - 1);
  builder_.add(std::move(operation));
}

void Updates::add() {
  std::vector<Exchange> all = exchanges();
  if (!all.empty() && all.front().travels) send(all.front());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i + 1 < all.size() && all[i + 1].travels) send(all[i + 1]);
    orthogonalise(all[i]);
    if (all[i].travels) bring_back(all[i]);
    builder_.release(all[i].layer, all[i].bucket);  // what the bucket before it has used
    for (int buffer : all[i].all()) builder_.give_back_later(buffer);
  }
  builder_.release(-1);
}

}  // namespace

std::int64_t batch_size(std::int64_t rows, std::int64_t columns, std::int64_t count) {
  return std::clamp<std::int64_t>(most_batch_bytes / (rows * columns * 4), 1, count);
}

void add_matrix_updates(Builder& builder, int after) { Updates(builder, after).add(); }

}  // namespace ganymede::plan
