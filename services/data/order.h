#pragma once

#include <cstdint>
#include <vector>

namespace ganymede::data {

/// Which rows a step takes: a pure function of (dataset, seed, step), whatever the number of ranks.
///
/// The training is one long sequence of rows; position p = (step - 1) · rows_per_step + i. An epoch is a run of
/// `rows` positions and holds every row once. Inside an epoch the rows stand in the order of their cost, reshuffled
/// among those of one cost bucket; the order is cut into groups of rows_per_step · balance_group rows, the rows of a
/// group are shuffled and dealt to its steps, and the steps are spread over the epoch in strata, so that every stretch
/// of training sees cheap and dear rows alike.
/// Where rows is no multiple of rows_per_step, a step takes the last rows of one epoch and the first of the next;
/// both come from the middle of the cost order, so that this step is balanced too.
class Order {
 public:
  /// `bucket_rows`: training rows by cost bucket. Throws Error(usage) when there are fewer rows than a step takes.
  Order(std::vector<std::uint64_t> bucket_rows, std::uint64_t seed, std::uint64_t rows_per_step,
        std::uint64_t balance_group);

  /// The rows of one step (≥ 1), in order; the ranks take consecutive shares.
  std::vector<std::uint64_t> step_rows(std::uint64_t step) const;

  /// The row at one position of the sequence.
  std::uint64_t row_at(std::uint64_t position) const;

  std::uint64_t rows() const { return rows_; }

 private:
  struct Epoch;
  Epoch epoch(std::uint64_t number) const;
  std::uint64_t unit_at(const Epoch& epoch, std::uint64_t turn) const;
  std::uint64_t row_of(const Epoch& epoch, std::uint64_t place) const;

  std::vector<std::uint64_t> bucket_rows_;
  std::uint64_t seed_, rows_per_step_, balance_group_, rows_ = 0;
};

}  // namespace ganymede::data
