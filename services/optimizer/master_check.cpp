#include "services/optimizer/master_check.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "common/base/error.h"
#include "common/wire/bf16.h"
#include "services/optimizer/working_copy.h"

namespace ganymede::optimizer {
namespace {

[[noreturn]] void fail_of_memory(const placement::Placement& placement, const std::string& what) {
  fail(
      "The master of {} and its working copy are not the same any more in the memory of rank {}: it has changed by "
      "itself, so take this machine out if it happens again. Start the same command again: the run goes on from its "
      "last checkpoint.",
      what, placement.rank);
}

/// Index of the first element whose working copy is another one; `values.size()`: none.
std::size_t first_difference(std::span<const float> values, const std::byte* working, config::ParameterWire wire) {
  std::vector<std::uint16_t> rounded;
  const auto* expected = reinterpret_cast<const std::byte*>(values.data());
  std::size_t size = sizeof(float);
  if (wire == config::ParameterWire::bf16) {
    rounded.resize(values.size());
    wire::encode_bf16(values, rounded.data());
    expected = reinterpret_cast<const std::byte*>(rounded.data());
    size = sizeof(std::uint16_t);
  }
  std::size_t bytes = values.size() * size;
  if (std::memcmp(expected, working, bytes) == 0) return values.size();
  return static_cast<std::size_t>(std::mismatch(expected, expected + bytes, working).first - expected) / size;
}

void check_chunk(const placement::Placement& placement, const CellMemory& memory, const placement::Chunk& chunk) {
  auto bucket = static_cast<std::size_t>(chunk.bucket);
  config::ParameterWire wire = memory.working_form.buckets[bucket].wire();
  std::int64_t at = chunk.shard_offset - placement.buckets[bucket].shard_offset;
  std::int64_t size = wire == config::ParameterWire::fp32 ? sizeof(float) : sizeof(std::uint16_t);
  const std::byte* working = memory.working.data() + memory.working_form.offset[bucket] + at * size;
  std::span<const float> values =
      memory.master.subspan(static_cast<std::size_t>(chunk.shard_offset), static_cast<std::size_t>(chunk.count));
  std::size_t found = first_difference(values, working, wire);
  if (found < values.size())
    fail_of_memory(placement, fmt::format("{} (element {})", placement.parameters[chunk.parameter].name,
                                          chunk.first + static_cast<std::int64_t>(found)));
}

/// Blocks may begin in one chunk and end in another, so the bucket is encoded as a whole.
void check_blocks(const placement::Placement& placement, const CellMemory& memory, int bucket) {
  const placement::Bucket& placed = placement.buckets[bucket];
  const wire::BucketForm& form = memory.working_form.buckets[bucket];
  std::vector<std::byte> encoded(static_cast<std::size_t>(form.shard_bytes()));
  form.encode(placed.shard_begin(), placed.shard_begin() + placed.shard_elements(),
              memory.master.data() + placed.shard_offset, encoded.data());
  if (std::memcmp(encoded.data(), memory.working.data() + memory.working_form.offset[bucket], encoded.size()) != 0)
    fail_of_memory(placement, fmt::format("bucket {}", placed.name));
}

}  // namespace

void check_master(const placement::Placement& placement, const CellMemory& memory, const Span& under_way,
                  const std::function<void()>& progress) {
  int torn = placement.chunks[under_way.first].bucket;
  for (std::size_t i = 0; i < placement.buckets.size(); i++) {
    auto bucket = static_cast<int>(i);
    progress();
    if (by_blocks(memory, bucket) && bucket != torn) check_blocks(placement, memory, bucket);
  }
  for (std::size_t i = 0; i < placement.chunks.size(); i++) {
    const placement::Chunk& chunk = placement.chunks[i];
    bool has_values = chunk.parameter >= 0 && chunk.phase != placement::Phase::state;
    bool is_torn = under_way.first <= i && i < under_way.end;
    if (!has_values || is_torn || by_blocks(memory, chunk.bucket)) continue;
    check_chunk(placement, memory, chunk);
    if (i % 1024 == 0) progress();
  }
}

}  // namespace ganymede::optimizer
