#include "services/worker/model/expert_dispatch.h"

#include <cstring>
#include <numeric>

#include "common/base/error.h"
#include "common/placement/expert_range.h"
#include "services/worker/model/row_access.h"

namespace ganymede::worker::model {

namespace {

/// Tokens that have an expert at each place, in order of place, then of token.
void plan_sends(const at::Tensor& choices, int places, int experts, Dispatch& plan) {
  const std::int64_t width = choices.size(1), top_k = width / 2;
  const auto* expert = choices.const_data_ptr<std::int32_t>();
  std::vector<std::vector<std::int32_t>> to(static_cast<std::size_t>(places));
  for (std::int64_t t = 0; t < plan.tokens; ++t) {
    for (std::int64_t k = 0; k < top_k; ++k) {
      auto& list = to[static_cast<std::size_t>(placement::place_of_expert(experts, places, expert[t * width + k]))];
      if (list.empty() || list.back() != t) list.push_back(static_cast<std::int32_t>(t));
    }
  }
  for (const auto& list : to) {
    plan.sent.push_back(static_cast<std::int64_t>(list.size()));
    plan.token.insert(plan.token.end(), list.begin(), list.end());
  }
}

/// Rows of any dtype picked by index.
void pick(const at::Tensor& from, const std::vector<std::int32_t>& index, const at::Tensor& to) {
  const auto bytes = static_cast<std::size_t>(from.size(1) * from.element_size());
  const auto* source = static_cast<const char*>(from.const_data_ptr());
  auto* target = static_cast<char*>(to.data_ptr());
  for (const std::int32_t row : index) {
    std::memcpy(target, source + static_cast<std::size_t>(row) * bytes, bytes);
    target += bytes;
  }
}

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// out[t] = base[t] + Σ of the returned rows of token t, which lie in order of place.
void sum_returned(const Dispatch& plan, const at::Tensor& returned, const at::Tensor& base, const at::Tensor& out) {
  std::vector<std::vector<const void*>> parts(static_cast<std::size_t>(plan.tokens));
  for (auto& list : parts) list.reserve(plan.sent.size());
  const Rows from(returned);
  for (std::size_t i = 0; i < plan.token.size(); ++i) {
    parts[static_cast<std::size_t>(plan.token[i])].push_back(from[static_cast<std::int64_t>(i)]);
  }
  const Rows to(out), start(base.defined() ? base : out);
  for (std::int64_t t = 0; t < plan.tokens; ++t) {
    const auto& list = parts[static_cast<std::size_t>(t)];
    kernels::sum_rows(base.defined() ? start[t] : nullptr, list.data(), nullptr, list.size(), to[t], to.size,
                      to.element);
  }
}

}  // namespace

std::int64_t Dispatch::sent_rows() const { return sum_of(sent); }
std::int64_t Dispatch::received_rows() const { return sum_of(received); }

void pack_choices(const at::Tensor& indices, const at::Tensor& weights, const at::Tensor& choices) {
  const std::int64_t top_k = indices.size(1);
  choices.narrow(1, 0, top_k).copy_(indices);
  choices.narrow(1, top_k, top_k).copy_(weights.view(at::kInt));
}

at::Tensor indices_of(const at::Tensor& choices) { return choices.narrow(1, 0, choices.size(1) / 2).contiguous(); }

at::Tensor routing_of(const at::Tensor& choices) {
  const std::int64_t top_k = choices.size(1) / 2;
  return choices.narrow(1, top_k, top_k).contiguous().view(at::kFloat);
}

Dispatch plan_dispatch(ExpertExchange& exchange, const at::Tensor& choices, int experts, bool even) {
  Dispatch plan;
  plan.even = even;
  plan.tokens = choices.size(0);
  if (even) {
    plan.sent.assign(static_cast<std::size_t>(exchange.size()), plan.tokens);
    plan.received = plan.sent;
    return plan;
  }
  plan_sends(choices, exchange.size(), experts, plan);
  plan.received = exchange.counts(plan.sent);
  return plan;
}

void send(ExpertExchange& exchange, const Dispatch& plan, const at::Tensor& rows, const at::Tensor& staged,
          const at::Tensor& to) {
  if (plan.even) return exchange.gather(rows, to);
  const auto packed = staged.narrow(0, 0, plan.sent_rows());
  pick(rows, plan.token, packed);
  exchange.rows(packed, plan.sent, to, plan.received, Way::there);
}

void bring_back(ExpertExchange& exchange, const Dispatch& plan, const at::Tensor& rows, const at::Tensor& returned,
                const at::Tensor& base, const at::Tensor& out) {
  if (!plan.even) {
    const auto arrived = returned.narrow(0, 0, plan.sent_rows());
    exchange.rows(rows, plan.received, arrived, plan.sent, Way::back);
    return sum_returned(plan, arrived, base, out);
  }
  exchange.sum(rows, returned);
  const Rows to(out), from(returned), start(base.defined() ? base : out);
  for (std::int64_t t = 0; t < plan.tokens; ++t) {
    kernels::add_fp32(base.defined() ? start[t] : nullptr, static_cast<const float*>(from[t]), to[t], to.size,
                      to.element);
  }
}

}  // namespace ganymede::worker::model
