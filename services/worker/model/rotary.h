#pragma once

#include "services/worker/model/tensors.h"

/// Projections as attention wants them: fp32, one kv head after another, rotated.
namespace ganymede::worker::model {

/// How the heads of a projection [T, heads · dim] lie: head h belongs to kv head h / group.
struct HeadLayout {
  std::int64_t kv_heads = 1, group = 1, dim = 0;
};

/// Position of each token within its document.
std::vector<std::int64_t> positions(const Row& row);

/// fp32 [kv_heads, T · group, dim] of a projection [T, kv_heads · group · dim], rotated by the token's position.
/// Written to `out` if it is defined.
at::Tensor split_heads_rotated(const at::Tensor& projection, const HeadLayout& layout, const RotaryTables::Table& table,
                               const std::vector<std::int64_t>& position, const at::Tensor& out = {});

/// Backward of split_heads_rotated: [T, kv_heads · group · dim] in `dtype`.
at::Tensor merge_heads_rotated_back(const at::Tensor& heads, const HeadLayout& layout, const RotaryTables::Table& table,
                                    const std::vector<std::int64_t>& position, at::ScalarType dtype);

/// The same change of layout with a factor instead of a rotation.
at::Tensor split_heads_scaled(const at::Tensor& projection, const HeadLayout& layout, double scale,
                              const at::Tensor& out = {});
at::Tensor merge_heads_scaled(const at::Tensor& heads, const HeadLayout& layout, double scale, at::ScalarType dtype);

}  // namespace ganymede::worker::model
