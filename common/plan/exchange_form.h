#pragma once

#include <cstdint>

#include "common/plan/plan.h"

/// How the tokens of a row travel to the experts of their expert group and back: what the plan knows of it before a
/// token is routed.
namespace ganymede::plan {

/// Of one row and one layer with experts, on each rank. Sizes are exact when `even`, else the most that can come.
struct ExchangeForm {
  int places = 1;     // ranks of the expert group; 1: nothing travels
  bool even = false;  // every place has as many of each token's experts: all tokens go everywhere, with static sizes
  std::int64_t tokens = 0, hidden = 0, top_k = 0;
  std::int64_t element = 4;  // bytes of the compute type

  bool travels() const { return places > 1; }
  /// Rows that come to a place, its own among them: one from each place for each of its tokens.
  std::int64_t received() const { return tokens * places; }
  /// Rows that a place sends, to itself among others: a token once to each place that has one of its experts.
  std::int64_t sent() const { return tokens * (places < top_k ? places : top_k); }
};

ExchangeForm exchange_form(const config::Config& config);

/// What lies in an exchange buffer: rows of hidden states or gradients, then what goes with each row, of 4 bytes.
struct TravelLayout {
  std::int64_t rows = 0;
  bool fp32 = false;      // rows; else in the compute type
  std::int64_t with = 0;  // columns of what goes with a row: choices (2K) or gradients of weights (K)
  std::int64_t with_offset = 0, bytes = 0;
};
TravelLayout travel_layout(const ExchangeForm& form, Travel travel, bool backward);

/// Whether the rows of a layer travel: it has experts, and they lie on several ranks.
bool travels(const config::Config& config, int layer);

/// Whether what was received is kept for backward, and not sent again: sizes are static and nothing is recomputed.
bool keeps_received(const config::Config& config);

/// Most rows of a rank that a layer has under way at once (ExpertPasses).
constexpr int rows_under_way = 3;

/// Bytes that the rank at this place sends, all inside its node, for one row and layer: exact when the form is even
/// (and then what the counters show), else for routing in which all choices of experts are equally likely.
struct ExchangeBytes {
  std::int64_t dispatch_forward = 0, combine_forward = 0, dispatch_backward = 0, combine_backward = 0;
};
ExchangeBytes exchange_bytes(const config::Config& config, int place);

}  // namespace ganymede::plan
