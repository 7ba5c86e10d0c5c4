#pragma once

#include <cstdint>
#include <span>

namespace ganymede::worker {

struct Sampling {
  double temperature = 0.8;  // 0: the most likely token
  double top_p = 1.0;        // only the most likely tokens that together have this probability
  std::uint64_t seed = 1;
};

/// The next token: a pure function of logits, sampling and `position` (how many tokens were drawn before). Of equal
/// logits the lower token comes first.
std::int64_t sample(std::span<const float> logits, const Sampling& sampling, std::uint64_t position);

}  // namespace ganymede::worker
