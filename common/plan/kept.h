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
};

struct KeptPart {
  Kept what{};
  std::vector<std::int64_t> shape;
  bool fp32 = false;        // else the compute type
  std::int64_t offset = 0;  // bytes in the buffer
};

struct KeptActivations {
  std::vector<KeptPart> parts;
  std::int64_t bytes = 0;
};

/// Of one layer and row, by the configuration's `recompute`: full: nothing; selective: the attention's result; none:
/// all that backward needs. Rows that came from other ranks of an expert group are never kept: they are sent again.
KeptActivations kept_activations(const config::Config& config, int layer);

}  // namespace ganymede::plan
