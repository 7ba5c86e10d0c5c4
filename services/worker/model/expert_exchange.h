#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

/// What the ranks of an expert group exchange. T = tokens of a row, C = columns.
namespace ganymede::worker::model {

/// To the experts, or back to where the tokens came from: only counters of bytes look at it.
enum class Way : std::uint8_t { there, back };

/// Between the places of an expert group. Calls are matched by their order, which is the same on all places. Tensors
/// are contiguous; results are complete when a call returns. One thread at a time.
class ExpertExchange {
 public:
  virtual ~ExpertExchange() = default;
  virtual int size() const = 0;
  virtual int place() const = 0;
  /// How many rows come from each place when this one sends `send_counts[p]` to place p.
  virtual std::vector<std::int64_t> counts(const std::vector<std::int64_t>& send_counts) = 0;
  /// Sends `from` [n, C], in order of destination; receives into `to` [m, C], in order of source.
  virtual void rows(const at::Tensor& from, const std::vector<std::int64_t>& send_counts, const at::Tensor& to,
                    const std::vector<std::int64_t>& receive_counts, Way way) = 0;
  /// Everyone's `own` [T, C] into `all` [places · T, C], in order of place. `own` may be its place in `all`.
  virtual void gather(const at::Tensor& own, const at::Tensor& all) = 0;
  /// `sum` (fp32 [T, C]): over the places in their order, in fp32, of this one's T rows of their `parts`
  /// [places · T, C].
  virtual void sum(const at::Tensor& parts, const at::Tensor& sum) = 0;
};

}  // namespace ganymede::worker::model
