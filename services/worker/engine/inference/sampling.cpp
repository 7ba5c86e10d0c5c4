#include "services/worker/engine/inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/base/random.h"

namespace ganymede::worker {

std::int64_t sample(std::span<const float> logits, const Sampling& sampling, std::uint64_t position) {
  if (sampling.temperature <= 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return logits[a] > logits[b]; });
  double highest = logits[order[0]];
  std::vector<double> weight;  // in that order, not normalised
  double all = 0;
  for (std::int64_t token : order) {
    weight.push_back(std::exp((logits[token] - highest) / sampling.temperature));
    all += weight.back();
  }
  std::size_t kept = 0;
  double mass = 0;
  while (kept < weight.size() && (kept == 0 || mass < sampling.top_p * all)) mass += weight[kept++];
  double drawn = uniform(sampling.seed, 0, position) * mass;
  std::size_t chosen = 0;
  while (chosen + 1 < kept && drawn >= weight[chosen]) drawn -= weight[chosen++];
  return order[chosen];
}

}  // namespace ganymede::worker
