#include "services/worker/model/expert_order.h"

namespace ganymede::worker::model {

ExpertOrder order_by_expert(const at::Tensor& indices, std::int64_t first, std::int64_t local) {
  const auto* expert = indices.const_data_ptr<std::int32_t>();
  const std::int64_t pairs = indices.numel(), top_k = indices.size(1);
  ExpertOrder order;
  order.begin.assign(static_cast<std::size_t>(local) + 1, 0);
  order.position.assign(static_cast<std::size_t>(pairs), -1);
  const auto mine = [&](std::int64_t pair) { return expert[pair] >= first && expert[pair] < first + local; };
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    if (mine(pair)) ++order.begin[static_cast<std::size_t>(expert[pair] - first) + 1];
  }
  for (std::size_t e = 1; e < order.begin.size(); ++e) order.begin[e] += order.begin[e - 1];
  order.row.resize(static_cast<std::size_t>(order.slots()));
  order.choice.resize(order.row.size());
  auto next = order.begin;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    if (!mine(pair)) continue;
    const std::int64_t slot = next[static_cast<std::size_t>(expert[pair] - first)]++;
    order.position[static_cast<std::size_t>(pair)] = slot;
    order.row[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(pair / top_k);
    order.choice[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(pair % top_k);
  }
  return order;
}

}  // namespace ganymede::worker::model
