#include "services/data/serving.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/os/futex.h"
#include "common/step_protocol/worker_machine.h"

namespace ganymede::data {
namespace {

/// Memory for one slot, to see what it should hold without touching it.
struct Draft {
  explicit Draft(std::size_t elements) : tokens(elements), targets(elements), documents(elements) {}
  RowArrays arrays() { return {tokens, targets, documents}; }
  std::vector<std::int32_t> tokens, targets, documents;
};

[[noreturn]] void changed(const Dataset& dataset, const std::string& what) {
  fail(
      "Dataset {} is not the one that this run began with, {} holds other rows: put the old dataset back and start the "
      "run again.",
      dataset.folder(), what);
}

}  // namespace

BatchHeader SlotArea::header(std::size_t slot) const {
  auto at = headers.subspan(slot * header_words, header_words);
  return {at[0], at[1], at[2], at[3]};
}

RowArrays SlotArea::content(std::size_t slot) const {
  std::size_t size = rows * seq_len;
  return {arrays.tokens.subspan(slot * size, size), arrays.targets.subspan(slot * size, size),
          arrays.documents.subspan(slot * size, size)};
}

void SlotArea::publish(std::size_t slot, const BatchHeader& header, std::uint64_t word) const {
  auto at = headers.subspan(slot * header_words, header_words);
  std::fill(at.begin(), at.end(), 0);
  at[0] = header.step;
  at[1] = header.loss_tokens;
  at[2] = header.rows;
  at[3] = header.hash;
  os::store_and_wake(words[slot], word);
}

Server::Server(const Dataset& dataset, const Order& order, SlotArea slots, placement::RowRange mine)
    : dataset_(dataset), order_(order), slots_(slots), mine_(mine), known_(slots.words.size(), step_protocol::never) {
  GANYMEDE_CHECK(slots.rows == static_cast<std::size_t>(mine.count), "{} rows in a slot for {}", slots.rows,
                 mine.count);
}

int Server::serve(std::uint64_t decided_step, std::uint64_t last_step) {
  dataset_.check_unchanged();
  int filled = 0;
  std::uint64_t slots = slots_.words.size();
  for (std::uint64_t step = decided_step + 1; step <= std::min(decided_step + slots, last_step); ++step) {
    std::size_t slot = step % slots;
    std::uint64_t held = slots_.words[slot].load(std::memory_order_acquire);
    if (held == step) {
      check(slot, step);
    } else if (step_protocol::slot_free(held, decided_step)) {
      fill(slot, step);
      ++filled;
    }
  }
  return filled;
}

BatchHeader Server::build(std::uint64_t step, const RowArrays& out) const {
  std::vector<std::uint64_t> rows = order_.step_rows(step);
  BatchHeader header{.step = step, .rows = slots_.rows};
  for (std::uint64_t row : rows) header.loss_tokens += dataset_.row(row).loss_tokens;
  for (std::size_t i = 0; i < slots_.rows; ++i) fill_row(dataset_, rows[mine_.first + i], out.row(i, slots_.seq_len));
  header.hash = content_hash(out);
  return header;
}

void Server::fill(std::size_t slot, std::uint64_t step) {
  BatchHeader header = build(step, slots_.content(slot));
  dataset_.check_unchanged();
  slots_.publish(slot, header, step);
  known_[slot] = step;
}

void Server::check(std::size_t slot, std::uint64_t step) {
  if (known_[slot] == step) return;
  Draft draft(slots_.rows * slots_.seq_len);
  bool right = build(step, draft.arrays()) == slots_.header(slot) &&
               content_hash(slots_.content(slot)) == slots_.header(slot).hash;
  if (!right) changed(dataset_, fmt::format("the batch of step {}", step));
  known_[slot] = step;
}

std::uint64_t used_validation_rows(const Dataset& dataset, std::uint64_t wanted) {
  return std::min(wanted, dataset.meta().validation_rows);
}

void publish_validation(const Dataset& dataset, const SlotArea& area, std::uint64_t used, int rank) {
  std::uint64_t first_row = dataset.meta().train_rows;
  std::uint64_t first = std::min<std::uint64_t>(static_cast<std::uint64_t>(rank) * area.rows, used);
  BatchHeader header{.step = validation_published, .rows = std::min<std::uint64_t>(area.rows, used - first)};
  for (std::uint64_t i = 0; i < used; ++i) header.loss_tokens += dataset.row(first_row + i).loss_tokens;
  Draft draft(area.rows * area.seq_len);
  for (std::size_t i = 0; i < area.rows; ++i) {
    RowArrays out = draft.arrays().row(i, area.seq_len);
    if (i < header.rows)
      fill_row(dataset, first_row + first + i, out);
    else
      fill_padding(out);
  }
  header.hash = content_hash(draft.arrays());
  dataset.check_unchanged();
  if (area.words[0].load(std::memory_order_acquire) == validation_published) {
    if (header != area.header(0)) changed(dataset, "its validation part");
    return;
  }
  RowArrays content = area.content(0);
  std::copy(draft.tokens.begin(), draft.tokens.end(), content.tokens.begin());
  std::copy(draft.targets.begin(), draft.targets.end(), content.targets.begin());
  std::copy(draft.documents.begin(), draft.documents.end(), content.documents.begin());
  area.publish(0, header, validation_published);
}

}  // namespace ganymede::data
