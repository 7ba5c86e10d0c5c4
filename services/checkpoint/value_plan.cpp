#include "services/checkpoint/value_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace ganymede::checkpoint {
namespace {

int layer_of(const placement::Bucket& bucket) {
  if (bucket.kind == model_spec::BucketKind::embed) return -1;
  if (bucket.kind == model_spec::BucketKind::head) return std::numeric_limits<int>::max();
  return bucket.layer;
}

}  // namespace

bool is_stored(const placement::Placement& placement, const placement::Chunk& chunk) {
  return chunk.parameter >= 0 && chunk.replica == placement.replica;
}

std::vector<PlannedValue> plan_values(const placement::Placement& placement, std::int64_t most_elements) {
  std::vector<int> order;
  std::map<std::pair<int, std::int64_t>, int> state_chunk;  // by owned range and element
  for (std::size_t index = 0; index < placement.chunks.size(); ++index) {
    const placement::Chunk& chunk = placement.chunks[index];
    if (!is_stored(placement, chunk)) continue;
    if (chunk.phase == placement::Phase::state) {
      state_chunk[{chunk.owned, chunk.first}] = static_cast<int>(index);
    } else {
      order.push_back(static_cast<int>(index));
    }
  }
  auto key = [&](int index) {
    const placement::Chunk& chunk = placement.chunks[index];
    const std::string& name = placement.parameters[chunk.parameter].name;
    return std::tuple<int, const std::string&, std::int64_t>(layer_of(placement.buckets[chunk.bucket]), name,
                                                             chunk.first);
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });

  std::vector<PlannedValue> values;
  for (int index : order) {
    const placement::Chunk& chunk = placement.chunks[index];
    bool joins = !values.empty() && values.back().parameter == chunk.parameter &&
                 values.back().first + values.back().count == chunk.first &&
                 values.back().count + chunk.count <= most_elements;
    if (!joins) values.push_back({chunk.parameter, chunk.first, 0, {}});
    values.back().count += chunk.count;
    values.back().chunks.push_back(index);
    if (chunk.phase == placement::Phase::master) {
      values.back().state_chunks.push_back(state_chunk.at({chunk.owned, chunk.first}));
    }
  }
  return values;
}

}  // namespace ganymede::checkpoint
