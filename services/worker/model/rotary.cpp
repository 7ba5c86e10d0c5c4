#include "services/worker/model/rotary.h"

#include <algorithm>
#include <cmath>

#include "common/base/error.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/row_access.h"

namespace ganymede::worker::model {

namespace {

RotaryTables::Table make_table(double theta, std::int64_t longest, std::int64_t half) {
  RotaryTables::Table table{at::empty({longest, half}, at::kFloat), at::empty({longest, half}, at::kFloat)};
  auto* cos = table.cos.data_ptr<float>();
  auto* sin = table.sin.data_ptr<float>();
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
    for (std::int64_t position = 0; position < longest; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      cos[position * half + i] = static_cast<float>(std::cos(angle));
      sin[position * half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

/// Calls f(token, head pointer in the projection, head pointer in the head-major tensor) for all tokens and heads.
template <class F>
void for_heads(const at::Tensor& projection, const at::Tensor& heads, const HeadLayout& layout, const F& f) {
  const Rows rows(projection);
  const std::int64_t tokens = projection.size(0), bytes = layout.dim * projection.element_size();
  auto* data = heads.data_ptr<float>();
  parallel_rows(tokens, projection.size(1), [&](std::int64_t t) {
    auto* flat = static_cast<char*>(rows[t]);
    for (std::int64_t head = 0; head < layout.kv_heads * layout.group; ++head) {
      const std::int64_t kv = head / layout.group, member = head % layout.group;
      f(t, static_cast<void*>(flat + head * bytes), data + ((kv * tokens + t) * layout.group + member) * layout.dim);
    }
  });
}

at::Tensor empty_heads(const at::Tensor& projection, const HeadLayout& layout) {
  return at::empty({layout.kv_heads, projection.size(0) * layout.group, layout.dim}, at::kFloat);
}

at::Tensor empty_projection(const at::Tensor& heads, const HeadLayout& layout, at::ScalarType dtype) {
  return at::empty({heads.size(1) / layout.group, layout.kv_heads * layout.group * layout.dim}, dtype);
}

void check_longest(const RotaryTables::Table& table, const std::vector<std::int64_t>& position) {
  for (const auto p : position) {
    if (p >= table.cos.size(0)) {
      fail("a document is longer than the {} positions of the rotary tables; use rows of at most that many tokens",
           table.cos.size(0));
    }
  }
}

}  // namespace

RotaryTables::RotaryTables(const model_spec::ModelSpec& spec, std::int64_t longest, bool one_a_layer) {
  std::vector<double> thetas;  // of the tables
  for (const auto& layer : spec.layers) {
    const auto found = std::find(thetas.begin(), thetas.end(), layer.rope_theta);
    const bool there = !one_a_layer && found != thetas.end();
    of_layer_.push_back(there ? static_cast<std::size_t>(found - thetas.begin()) : tables_.size());
    if (there) continue;
    thetas.push_back(layer.rope_theta);
    tables_.push_back(make_table(layer.rope_theta, longest, spec.rotary_dim / 2));
  }
}

std::int64_t RotaryTables::bytes() const {
  std::int64_t sum = 0;
  for (const Table& table : tables_) sum += static_cast<std::int64_t>(table.cos.nbytes() + table.sin.nbytes());
  return sum;
}

std::vector<std::int64_t> positions(const Row& row) {
  std::vector<std::int64_t> position;
  for (std::size_t d = 0; d + 1 < row.document_begin.size(); ++d) {
    const std::int64_t length = row.document_begin[d + 1] - row.document_begin[d];
    for (std::int64_t i = 0; i < length; ++i) position.push_back(i);
  }
  return position;
}

at::Tensor split_heads_rotated(const at::Tensor& projection, const HeadLayout& layout, const RotaryTables::Table& table,
                               const std::vector<std::int64_t>& position, const at::Tensor& out) {
  check_longest(table, position);
  auto heads = out.defined() ? out : empty_heads(projection, layout);
  const auto element = element_of(projection);
  const std::int64_t half = table.cos.size(1);
  const auto* cos = table.cos.const_data_ptr<float>();
  const auto* sin = table.sin.const_data_ptr<float>();
  for_heads(projection, heads, layout, [&](std::int64_t t, const void* from, float* to) {
    const std::int64_t angle = position[static_cast<std::size_t>(t)] * half;
    kernels::rotate(from, to, cos + angle, sin + angle, static_cast<std::size_t>(half),
                    static_cast<std::size_t>(layout.dim), element);
  });
  return heads;
}

at::Tensor merge_heads_rotated_back(const at::Tensor& heads, const HeadLayout& layout, const RotaryTables::Table& table,
                                    const std::vector<std::int64_t>& position, at::ScalarType dtype) {
  auto projection = empty_projection(heads, layout, dtype);
  const auto element = element_of(projection);
  const std::int64_t half = table.cos.size(1);
  const auto* cos = table.cos.const_data_ptr<float>();
  const auto* sin = table.sin.const_data_ptr<float>();
  for_heads(projection, heads, layout, [&](std::int64_t t, void* to, const float* from) {
    const std::int64_t angle = position[static_cast<std::size_t>(t)] * half;
    kernels::rotate_back(from, to, cos + angle, sin + angle, static_cast<std::size_t>(half),
                         static_cast<std::size_t>(layout.dim), element);
  });
  return projection;
}

at::Tensor split_heads_scaled(const at::Tensor& projection, const HeadLayout& layout, double scale,
                              const at::Tensor& out) {
  auto heads = out.defined() ? out : empty_heads(projection, layout);
  const auto element = element_of(projection);
  for_heads(projection, heads, layout, [&](std::int64_t, const void* from, float* to) {
    kernels::scaled_to_fp32(from, to, static_cast<std::size_t>(layout.dim), static_cast<float>(scale), element);
  });
  return heads;
}

at::Tensor merge_heads_scaled(const at::Tensor& heads, const HeadLayout& layout, double scale, at::ScalarType dtype) {
  auto projection = empty_projection(heads, layout, dtype);
  const auto element = element_of(projection);
  for_heads(projection, heads, layout, [&](std::int64_t, void* to, const float* from) {
    kernels::from_fp32(from, to, static_cast<std::size_t>(layout.dim), static_cast<float>(scale), element);
  });
  return projection;
}

}  // namespace ganymede::worker::model
