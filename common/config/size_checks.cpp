#include <algorithm>

#include "common/base/error.h"
#include "common/config/cross_checks.h"

/// Keys that are small enough each can still make something endless together. What is derived from them (elements,
/// bytes, entries of tables, operations of a plan) is held far below what 64 bits and a few seconds of a start allow;
/// whether a model fits this machine's memory is the host budget's question, not one of these.
namespace ganymede::config {
namespace {

constexpr std::int64_t widest = 1 << 24;         // side of a tensor, as of `model.hidden`
constexpr double most_parameters = 1e16;         // their bytes, in all copies, are far from 2^63
constexpr std::int64_t most_experts = 1 << 16;   // of all layers; each has three named matrices
constexpr std::int64_t most_tokens = 1LL << 31;  // of one rank's rows at once
constexpr std::int64_t most_row_layers = 1 << 14;

int moe_layers(const Model& m) { return m.experts == 0 ? 0 : m.layers - m.dense_layers; }

void check_heads(const Config& c, const Origin& origin) {
  auto check = [&](const std::string& key, int dim) {
    if (std::int64_t{c.model.heads} * dim <= widest) return;
    fail_usage("{}: key '{}' is {}; with model.heads = {} at most {} is possible.", origin(key), key, dim,
               c.model.heads, widest / c.model.heads);
  };
  check("model.qk_dim", c.model.qk_dim);
  check("model.v_dim", c.model.v_dim);
}

void check_expert_count(const Config& c, const Origin& origin) {
  const auto& m = c.model;
  if (std::int64_t{moe_layers(m)} * m.experts <= most_experts) return;
  fail_usage("{}: key 'model.experts' is {}; with {} layers that have experts at most {} is possible.",
             origin("model.experts"), m.experts, moe_layers(m), most_experts / moe_layers(m));
}

void check_parameter_count(const Config& c, const Origin& origin) {
  const auto& m = c.model;
  double hidden = m.hidden, heads = m.heads, kv_heads = std::max(m.kv_heads_global, m.kv_heads_sliding);
  double attention = hidden * (heads + kv_heads) * (m.qk_dim + m.v_dim);
  double dense = 3 * hidden * m.ffn * (m.layers - moe_layers(m));
  double experts = (3 * hidden * m.expert_ffn + hidden) * m.experts * moe_layers(m);
  double all = 2 * hidden * m.vocabulary + attention * m.layers + dense + experts;
  if (all <= most_parameters) return;
  fail_usage("{}: key 'model.hidden' is {}; with the other sizes that makes {:.1e} parameters, more than {:.0e}.",
             origin("model.hidden"), m.hidden, all, most_parameters);
}

/// Every row of a rank is an operation of each layer in the plan of a step, and each plan is laid out at the start.
void check_rows(const Config& c, const Origin& origin) {
  auto check = [&](const std::string& key, std::int64_t rows) {
    std::int64_t a_rank = (rows + c.parallel.ranks - 1) / c.parallel.ranks;
    if (a_rank * c.model.layers > most_row_layers) {
      fail_usage(
          "{}: key '{}' is {}, {} rows a rank; with {} layers at most {} are possible: use fewer, or more ranks.",
          origin(key), key, rows, a_rank, c.model.layers, most_row_layers / c.model.layers);
    }
    if (a_rank * c.data.seq_len < most_tokens) return;
    fail_usage("{}: key '{}' is {}, {} rows a rank; with data.seq_len = {} at most {} are possible.", origin(key), key,
               rows, a_rank, c.data.seq_len, (most_tokens - 1) / c.data.seq_len);
  };
  check("data.rows_per_step", c.data.rows_per_step);
  check("validation.rows", c.validation.rows);
}

}  // namespace

void check_sizes(const Config& config, const Origin& origin) {
  for (auto check : {check_heads, check_expert_count, check_parameter_count, check_rows}) check(config, origin);
}

}  // namespace ganymede::config
