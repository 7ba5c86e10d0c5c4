#include "services/data/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/error.h"
#include "common/base/random.h"

namespace ganymede::data {
namespace {

constexpr std::uint64_t most_strata = 8;

enum class Purpose : std::uint64_t { bucket = 1, group = 2, stratum = 3, round = 4 };

std::uint64_t key(std::uint64_t seed, Purpose purpose, std::uint64_t epoch, std::uint64_t index) {
  auto words = philox(seed ^ static_cast<std::uint64_t>(purpose) << 56, epoch, index);
  return std::uint64_t{words[0]} << 32 | words[1];
}

}  // namespace

/// How one epoch is cut: `head` rows that complete a step begun in the epoch before, `steps` whole steps, then the
/// rest, which a step of the next epoch completes.
struct Order::Epoch {
  std::uint64_t number = 0, head = 0, steps = 0, spare = 0;
  std::uint64_t spare_begin = 0;  // head and rest are the `spare` places from here on in the order of cost
};

Order::Order(std::vector<std::uint64_t> bucket_rows, std::uint64_t seed, std::uint64_t rows_per_step,
             std::uint64_t balance_group)
    : bucket_rows_(std::move(bucket_rows)), seed_(seed), rows_per_step_(rows_per_step), balance_group_(balance_group) {
  rows_ = std::accumulate(bucket_rows_.begin(), bucket_rows_.end(), std::uint64_t{0});
  if (rows_per_step == 0 || balance_group == 0)
    fail_usage("rows_per_step and balance_group must be at least 1, not {} and {}.", rows_per_step, balance_group);
  if (rows_ < rows_per_step)
    fail_usage(
        "The dataset has {} training rows, a step takes {}: give more text, a smaller seq_len or fewer "
        "rows_per_step.",
        rows_, rows_per_step);
}

Order::Epoch Order::epoch(std::uint64_t number) const {
  Epoch result;
  result.number = number;
  std::uint64_t begun = number * rows_ % rows_per_step_;
  result.head = begun == 0 ? 0 : rows_per_step_ - begun;
  result.steps = (rows_ - result.head) / rows_per_step_;
  result.spare = rows_ - result.steps * rows_per_step_;
  result.spare_begin = (rows_ - result.spare) / 2;
  return result;
}

std::uint64_t Order::unit_at(const Epoch& epoch, std::uint64_t turn) const {
  // Stratum k holds `rounds` or (for k < longer) `rounds` + 1 neighbouring units; every round takes one of each.
  std::uint64_t strata = std::min(most_strata, epoch.steps);
  std::uint64_t rounds = epoch.steps / strata, longer = epoch.steps % strata;
  std::uint64_t round = turn / strata;
  std::uint64_t taking = round < rounds ? strata : longer;
  std::uint64_t stratum = permuted(key(seed_, Purpose::round, epoch.number, round), taking, turn % strata);
  std::uint64_t begin = stratum * rounds + std::min(stratum, longer);
  std::uint64_t size = rounds + (stratum < longer ? 1 : 0);
  return begin + permuted(key(seed_, Purpose::stratum, epoch.number, stratum), size, round);
}

std::uint64_t Order::row_of(const Epoch& epoch, std::uint64_t place) const {
  std::uint64_t begin = 0;
  for (std::size_t bucket = 0;; ++bucket) {
    std::uint64_t size = bucket_rows_[bucket];
    if (place < begin + size)
      return begin + permuted(key(seed_, Purpose::bucket, epoch.number, bucket), size, place - begin);
    begin += size;
  }
}

std::uint64_t Order::row_at(std::uint64_t position) const {
  Epoch now = epoch(position / rows_);
  std::uint64_t at = position % rows_;
  std::uint64_t whole = now.steps * rows_per_step_;
  if (at < now.head) return row_of(now, now.spare_begin + at);
  if (at >= now.head + whole) return row_of(now, now.spare_begin + at - whole);
  std::uint64_t unit = unit_at(now, (at - now.head) / rows_per_step_);
  std::uint64_t group = unit / balance_group_;
  std::uint64_t begin = group * balance_group_ * rows_per_step_;
  std::uint64_t size = std::min(balance_group_ * rows_per_step_, whole - begin);
  std::uint64_t dealt = unit % balance_group_ * rows_per_step_ + (at - now.head) % rows_per_step_;
  std::uint64_t place = begin + permuted(key(seed_, Purpose::group, now.number, group), size, dealt);
  return row_of(now, place < now.spare_begin ? place : place + now.spare);
}

std::vector<std::uint64_t> Order::step_rows(std::uint64_t step) const {
  GANYMEDE_CHECK(step >= 1, "steps are counted from 1");
  std::vector<std::uint64_t> rows(rows_per_step_);
  for (std::uint64_t i = 0; i < rows_per_step_; ++i) rows[i] = row_at((step - 1) * rows_per_step_ + i);
  return rows;
}

}  // namespace ganymede::data
