#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/placement/placement.h"
#include "common/step_protocol/control_block.h"
#include "services/data/batch.h"
#include "services/data/order.h"

namespace ganymede::data {

/// Header of a batch slot: the first words of the eight in `header` (the rest is zero).
struct BatchHeader {
  std::uint64_t step = 0;
  std::uint64_t loss_tokens = 0;  // of the whole step, over all ranks
  std::uint64_t rows = 0;         // rows of this rank that are not padding
  std::uint64_t hash = 0;         // content_hash of this rank's rows
  bool operator==(const BatchHeader&) const = default;
};
constexpr std::size_t header_words = 8;

/// Slots in shared (or, in tests, plain) memory; every slot holds `rows` rows of seq_len.
struct SlotArea {
  std::span<step_protocol::Word> words;  // what each slot holds; stored last
  std::span<std::uint64_t> headers;      // [slots][header_words]
  RowArrays arrays;                      // [slots][rows][seq_len]
  std::size_t rows = 0, seq_len = 0;

  BatchHeader header(std::size_t slot) const;
  RowArrays content(std::size_t slot) const;
  /// Stores header, then word (release, with a wake).
  void publish(std::size_t slot, const BatchHeader& header, std::uint64_t word) const;
};

/// Fills this rank's batch slots. Not thread-safe; the dataset and the order must outlive it.
class Server {
 public:
  Server(const Dataset& dataset, const Order& order, SlotArea slots, placement::RowRange mine);

  /// Fills every slot that is free (rule 21) with the step of decided + 1 … min(decided + slots, last_step) that
  /// belongs there and returns how many it filled. A slot that already holds its step is left alone. Throws Error
  /// when it holds other rows than the dataset gives, or a file of that was written to: it was changed under the run.
  int serve(std::uint64_t decided_step, std::uint64_t last_step);

 private:
  void fill(std::size_t slot, std::uint64_t step);
  BatchHeader build(std::uint64_t step, const RowArrays& out) const;
  void check(std::size_t slot, std::uint64_t step);

  const Dataset& dataset_;
  const Order& order_;
  SlotArea slots_;
  placement::RowRange mine_;
  std::vector<std::uint64_t> known_;  // per slot: the step whose content is known to be right
};

/// Word of the validation slot once it is published.
constexpr std::uint64_t validation_published = 0;

/// Number of held-out rows that are used: `wanted`, or all there are if those are fewer.
std::uint64_t used_validation_rows(const Dataset& dataset, std::uint64_t wanted);

/// Writes this rank's share of the held-out rows into slot 0 of `area`, once: of `used` rows rank r takes
/// [r · area.rows, (r + 1) · area.rows) as far as there are any; the rest is padding. The header counts the loss
/// tokens of all `used` rows. Leaves a slot that is already right alone; throws Error when it holds other rows.
void publish_validation(const Dataset& dataset, const SlotArea& area, std::uint64_t used, int rank);

}  // namespace ganymede::data
