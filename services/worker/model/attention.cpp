#include "services/worker/model/attention.h"

#include <cmath>
#include <limits>

#include "services/worker/model/attention_blocks.h"
#include "services/worker/model/matmul.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/softmax_kernels.h"

namespace ganymede::worker::model {

namespace {

constexpr std::int64_t block_rows = 128;           // query rows (tokens · group) of a product
constexpr std::int64_t block_logits = 4 << 20;     // logits of a block, where a document is long
constexpr std::int64_t fewest_block_queries = 16;  // tokens

std::int64_t queries_of_block(const AttentionShape& shape, std::int64_t longest_key_range) {
  std::int64_t queries = std::max(fewest_block_queries, block_rows / shape.group());
  // A block of a sliding window sees queries + window - 1 keys, each query only window of them.
  if (shape.window > 0) queries = std::min(queries, std::max(fewest_block_queries, shape.window / 2));
  return std::max<std::int64_t>(1, std::min(queries, block_logits / (shape.group() * longest_key_range)));
}

/// One task: a block for one kv head.
struct Forward {
  const AttentionShape& shape;
  const AttentionInput& input;
  AttentionOutput& result;
  const float* sinks;

  void run(const AttentionBlock& block, std::int64_t kv, at::Tensor& scratch, float* of_task) const {
    const std::int64_t group = shape.group(), rows = block.queries * group;
    if (!scratch.defined()) scratch = at::empty({0}, at::kFloat);
    if (scratch.numel() < rows * (block.keys + shape.v_dim)) scratch.resize_({rows * (block.keys + shape.v_dim)});
    auto logits = scratch.narrow(0, 0, rows * block.keys).view({rows, block.keys});
    auto values = scratch.narrow(0, rows * block.keys, rows * shape.v_dim).view({rows, shape.v_dim});
    at::mm_out(logits, input.query[kv].narrow(0, block.query * group, rows),
               input.key[kv].narrow(0, block.key, block.keys).t());
    std::vector<float> inverse(static_cast<std::size_t>(rows));
    auto* log_sum = result.log_sum.data_ptr<float>() + kv * result.log_sum.size(1) + block.query * group;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto seen = seen_keys(shape, block, row);
      const float sink = sinks != nullptr ? sinks[kv * group + row % group] : -std::numeric_limits<float>::infinity();
      const auto softmax = kernels::softmax(logits.data_ptr<float>() + row * block.keys, seen.begin, seen.end,
                                            static_cast<std::size_t>(block.keys), shape.scale, sink);
      log_sum[row] = softmax.maximum + std::log(softmax.sum);
      inverse[static_cast<std::size_t>(row)] = 1.0f / softmax.sum;
      if (of_task != nullptr) raise(of_task[row % group], softmax);
    }
    at::mm_out(values, logits, input.value[kv].narrow(0, block.key, block.keys));
    store(block, kv, values.const_data_ptr<float>(), inverse);
  }

  /// A logit that is not finite makes the sum NaN.
  static void raise(float& largest, const kernels::SoftmaxRow& row) {
    largest = larger(largest, std::isfinite(row.sum) ? row.largest : std::numeric_limits<float>::quiet_NaN());
  }

  void store(const AttentionBlock& block, std::int64_t kv, const float* values,
             const std::vector<float>& inverse) const {
    const auto element = element_of(result.output);
    const std::int64_t group = shape.group(), bytes = shape.v_dim * result.output.element_size();
    auto* output = static_cast<char*>(result.output.data_ptr());
    for (std::int64_t row = 0; row < block.queries * group; ++row) {
      const std::int64_t token = block.query + row / group, head = kv * group + row % group;
      kernels::from_fp32(values + row * shape.v_dim, output + (token * shape.heads + head) * bytes,
                         static_cast<std::size_t>(shape.v_dim), inverse[static_cast<std::size_t>(row)], element);
    }
  }
};

/// Largest logits, which the tasks of one kv head find side by side. Without `largest` there is nothing to do.
struct TaskMaxima {
  TaskMaxima(const AttentionShape& shape, std::int64_t blocks, float* largest)
      : group(shape.group()), per_head(blocks), to(largest) {
    if (to == nullptr) return;
    found.assign(static_cast<std::size_t>(shape.heads * blocks), -std::numeric_limits<float>::infinity());
  }
  float* of_task(std::int64_t task) { return to == nullptr ? nullptr : found.data() + task * group; }
  void raise() {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      float& head = to[at / group / per_head * group + at % group];
      head = larger(head, found[i]);
    }
  }
  std::int64_t group, per_head;
  float* to;
  std::vector<float> found;  // [kv_heads][blocks][group]
};

}  // namespace

std::vector<AttentionBlock> attention_blocks(const AttentionShape& shape, std::int64_t begin, std::int64_t end) {
  std::vector<AttentionBlock> blocks;
  if (begin == end) return blocks;
  const std::int64_t longest = shape.window > 0 ? std::min(end - begin, shape.window + block_rows) : end - begin;
  const std::int64_t queries = queries_of_block(shape, longest);
  for (std::int64_t query = begin; query < end; query += queries) {
    const std::int64_t last = std::min(end, query + queries);
    const std::int64_t key = shape.window > 0 ? std::max(begin, query - shape.window + 1) : begin;
    blocks.push_back({query, last - query, key, last - key});
  }
  return blocks;
}

std::int64_t largest_block(const AttentionShape& shape, const std::vector<AttentionBlock>& blocks) {
  std::int64_t largest = 0;
  for (const auto& block : blocks) largest = std::max(largest, block.queries * shape.group() * block.keys);
  return largest;
}

AttentionOutput attention(const AttentionShape& shape, const std::vector<std::int64_t>& document_begin,
                          const AttentionInput& input, at::ScalarType dtype, const AttentionOutput& out) {
  const std::int64_t tokens = input.key.size(1);
  AttentionOutput result = out;
  if (!result.output.defined()) result.output = at::empty({tokens, shape.heads * shape.v_dim}, dtype);
  if (!result.log_sum.defined()) result.log_sum = at::empty({shape.kv_heads, tokens * shape.group()}, at::kFloat);
  std::vector<AttentionBlock> blocks;
  for (std::size_t d = 0; d + 1 < document_begin.size(); ++d) {
    const auto more = attention_blocks(shape, document_begin[d], document_begin[d + 1]);
    blocks.insert(blocks.end(), more.begin(), more.end());
  }
  const auto count = static_cast<std::int64_t>(blocks.size());
  const Forward forward{shape, input, result, input.sinks.defined() ? input.sinks.const_data_ptr<float>() : nullptr};
  TaskMaxima maxima(shape, count, result.largest_logits);
  std::vector<at::Tensor> scratch(static_cast<std::size_t>(task_workers()));
  parallel_tasks(count * shape.kv_heads, [&](std::int64_t task, std::int64_t worker) {
    const OneThread one_thread;
    forward.run(blocks[static_cast<std::size_t>(task % count)], task / count, scratch[static_cast<std::size_t>(worker)],
                maxima.of_task(task));
  });
  maxima.raise();
  return result;
}

}  // namespace ganymede::worker::model
