#include "services/worker/model/expert_dispatch.h"

#include <cstring>

#include "common/base/error.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/row_access.h"

namespace ganymede::worker::model {

namespace {

/// Tokens that have an expert at each place, in order of place, then of token.
void plan_sends(const at::Tensor& indices, std::int64_t places, std::int64_t local_experts, Dispatch& plan) {
  const std::int64_t tokens = indices.size(0), top_k = indices.size(1);
  const auto* expert = indices.const_data_ptr<std::int32_t>();
  std::vector<std::vector<std::int32_t>> to(static_cast<std::size_t>(places));
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t k = 0; k < top_k; ++k) {
      auto& list = to[static_cast<std::size_t>(expert[t * top_k + k] / local_experts)];
      if (list.empty() || list.back() != t) list.push_back(static_cast<std::int32_t>(t));
    }
  }
  for (const auto& list : to) {
    plan.sent.push_back(static_cast<std::int64_t>(list.size()));
    plan.token.insert(plan.token.end(), list.begin(), list.end());
  }
}

/// Rows of any dtype picked by index.
at::Tensor pick(const at::Tensor& from, const std::vector<std::int32_t>& index) {
  auto out = at::empty({static_cast<std::int64_t>(index.size()), from.size(1)}, from.options());
  const auto source = from.contiguous();
  const auto bytes = static_cast<std::size_t>(from.size(1) * from.element_size());
  const auto* data = static_cast<const char*>(source.const_data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  parallel_rows(out.size(0), out.size(1), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    std::memcpy(to + at * bytes, data + static_cast<std::size_t>(index[at]) * bytes, bytes);
  });
  return out;
}

}  // namespace

ExpertInput dispatch(ExpertExchange& exchange, std::int64_t first_expert, std::int64_t local_experts,
                     const at::Tensor& rows, const at::Tensor& indices, const at::Tensor& weights, Dispatch& plan) {
  if (exchange.size() == 1) {
    return {rows, indices, weights, order_by_expert(indices, first_expert, local_experts)};
  }
  GANYMEDE_CHECK(first_expert == exchange.place() * local_experts, "place {} has experts from {} on, {} of them",
                 exchange.place(), first_expert, local_experts);
  plan_sends(indices, exchange.size(), local_experts, plan);
  plan.received = exchange.counts(plan.sent);
  // Indices and the bits of the weights travel as one row of integers.
  const auto choices = at::cat({indices, weights.view(at::kInt)}, 1);
  ExpertInput input;
  input.rows = send_again(exchange, plan, rows);
  const auto arrived = send_again(exchange, plan, choices);
  const std::int64_t top_k = indices.size(1);
  input.indices = arrived.narrow(1, 0, top_k).contiguous();
  input.weights = arrived.narrow(1, top_k, top_k).contiguous().view(at::kFloat);
  input.order = order_by_expert(input.indices, first_expert, local_experts);
  return input;
}

at::Tensor send_again(ExpertExchange& exchange, const Dispatch& plan, const at::Tensor& rows) {
  if (exchange.size() == 1) return rows;
  return exchange.rows(pick(rows, plan.token), plan.sent, plan.received);
}

at::Tensor combine(ExpertExchange& exchange, const Dispatch& plan, std::int64_t tokens, const at::Tensor& rows,
                   const at::Tensor& base) {
  if (exchange.size() == 1) return base.defined() ? at::add(base, rows) : rows;
  const auto back = exchange.rows(rows, plan.received, plan.sent);
  const auto places = static_cast<std::size_t>(exchange.size());
  std::vector<std::vector<const void*>> parts(static_cast<std::size_t>(tokens));
  for (auto& list : parts) list.reserve(places);
  const Rows from(back);
  for (std::size_t i = 0; i < plan.token.size(); ++i) {
    parts[static_cast<std::size_t>(plan.token[i])].push_back(from[static_cast<std::int64_t>(i)]);
  }
  auto out = at::empty({tokens, rows.size(1)}, rows.options());
  const Rows to(out), start(base.defined() ? base : out);
  parallel_rows(tokens, out.size(1), [&](std::int64_t t) {
    const auto& list = parts[static_cast<std::size_t>(t)];
    kernels::sum_rows(base.defined() ? start[t] : nullptr, list.data(), nullptr, list.size(), to[t], to.size,
                      to.element);
  });
  return out;
}

}  // namespace ganymede::worker::model
