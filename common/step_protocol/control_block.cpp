#include "common/step_protocol/control_block.h"

#include <cstddef>
#include <span>
#include <type_traits>

#include "common/base/hash.h"

namespace ganymede::step_protocol {

// The checksum runs over raw bytes, so every byte of the record must be a field's.
static_assert(std::is_trivially_copyable_v<DecisionRecord>);
constexpr std::size_t shared_words = 1 + 2 * most_update_groups + most_hyper_parameters;  // groups and hyper-parameters
static_assert(sizeof(DecisionRecord) == (32 + shared_words) * 8);
static_assert(offsetof(DecisionRecord, checksum) == (31 + shared_words) * 8);
static_assert(std::is_trivially_copyable_v<Setting>);
static_assert(sizeof(Setting) == (8 + shared_words) * 8);
static_assert(offsetof(Setting, checksum) == (7 + shared_words) * 8);
static_assert(std::is_trivially_copyable_v<SnapshotStatistics>);
static_assert(sizeof(SnapshotStatistics) == 8 * 8 && offsetof(SnapshotStatistics, checksum) == 7 * 8);
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

std::uint64_t DecisionRecord::compute_checksum() const {
  return hash64(std::span(reinterpret_cast<const std::byte*>(this), offsetof(DecisionRecord, checksum)));
}

std::uint64_t SnapshotStatistics::compute_checksum() const {
  return hash64(std::span(reinterpret_cast<const std::byte*>(this), offsetof(SnapshotStatistics, checksum)));
}

std::uint64_t Setting::compute_checksum() const {
  return hash64(std::span(reinterpret_cast<const std::byte*>(this), offsetof(Setting, checksum)));
}

}  // namespace ganymede::step_protocol
