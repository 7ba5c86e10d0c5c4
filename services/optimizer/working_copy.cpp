#include "services/optimizer/working_copy.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/wire/bf16.h"

namespace ganymede::optimizer {

using config::ParameterWire;

void publish(const CellMemory& memory, const placement::Placement& placement, int bucket, std::int64_t first,
             std::span<const float> values) {
  std::byte* shard = memory.working.data() + memory.working_form.offset[bucket];
  std::int64_t at = first - placement.buckets[bucket].shard_offset;
  if (memory.working_form.buckets[bucket].wire() == ParameterWire::fp32) {
    wire::stream_fp32(values, reinterpret_cast<float*>(shard) + at);
  } else {
    wire::stream_bf16(values, reinterpret_cast<std::uint16_t*>(shard) + at);
  }
}

void update_and_publish(const CellMemory& memory, const placement::Placement& placement, int bucket, std::int64_t first,
                        std::span<const float> values) {
  float* master = memory.master.data() + first;
  if (memory.working_form.buckets[bucket].wire() == ParameterWire::fp32) {
    std::copy_n(values.data(), values.size(), master);
    return publish(memory, placement, bucket, first, values);
  }
  std::byte* shard = memory.working.data() + memory.working_form.offset[bucket];
  std::int64_t at = first - placement.buckets[bucket].shard_offset;
  wire::copy_and_stream_bf16(values, master, reinterpret_cast<std::uint16_t*>(shard) + at);
}

wire::NonFinite publish_blocks(const CellMemory& memory, const placement::Placement& placement, int bucket,
                               std::int64_t first, std::int64_t count) {
  const placement::Bucket& placed = placement.buckets[bucket];
  std::int64_t to_flat = placed.shard_begin() - placed.shard_offset;
  wire::NonFinite found = memory.working_form.buckets[bucket].encode(
      first + to_flat, first + count + to_flat, memory.master.data() + placed.shard_offset,
      memory.working.data() + memory.working_form.offset[bucket]);
  if (found.count > 0) found.first -= to_flat;
  return found;
}

void finish_publishing() { wire::finish_stream(); }

bool by_blocks(const CellMemory& memory, int bucket) {
  return memory.working_form.buckets[bucket].wire() == ParameterWire::fp8;
}

void refuse_non_finite(const placement::Placement& placement, const wire::NonFinite& found, std::uint64_t step) {
  if (found.count == 0) return;
  auto range = std::find_if(placement.owned.begin(), placement.owned.end(), [&](const placement::OwnedRange& owned) {
    return found.first >= owned.shard_offset && found.first < owned.shard_offset + owned.count;
  });
  GANYMEDE_CHECK(range != placement.owned.end(), "element {} of the master is of no parameter", found.first);
  const model_spec::ParameterSpec& parameter = placement.parameters[range->parameter];
  std::int64_t element = range->first + found.first - range->shard_offset;
  fail(
      "parameter {} is not finite after step {} at row {}, column {} ({} such values nearby), which fp8 does not "
      "carry: "
      "go on from a checkpoint before it with a lower optimizer.lr, or look at it with wire.expert_gather = \"bf16\"",
      parameter.name, step, element / parameter.row_elements(), element % parameter.row_elements(), found.count);
}

}  // namespace ganymede::optimizer
