#pragma once

#include "common/config/config.h"

#include <cstdint>
#include <vector>

/// What is kept of a layer and row from forward to backward beside its input and its experts' indices: the contents of
/// a BufferKind::saved_activations.
namespace ganymede::plan {

/// By the names of model::KeptLayer.
enum class Kept : std::uint8_t {
  attention,
  log_sum,
  normed,
  middle,
  feed_input,
  query,
  key,
  value,
  scores,
  gate,
  up,
  gate_up,
  choices,           // of experts, an index and the bits of a weight each: integers [T, 2K]
  received_rows,     // of all places of the expert group, this one's feed_input among them
  received_choices,  // their choices, this one's among them
};

struct KeptPart {
  Kept what{};
  std::vector<std::int64_t> shape;
  bool fp32 = false;        // or integers of 4 bytes; else the compute type
  std::int64_t offset = 0;  // bytes in the buffer
};

struct KeptActivations {
  std::vector<KeptPart> parts;
  std::int64_t bytes = 0;
};

/// Of one layer and row, by the configuration's `recompute`: full: nothing; selective: the attention's result; none:
/// all that backward needs. Rows that came from other ranks of an expert group are kept with none where their number is
/// known (ExchangeForm::even); else they are sent again.
KeptActivations kept_activations(const config::Config& config, int layer);

}  // namespace ganymede::plan
