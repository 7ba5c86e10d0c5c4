#include "common/plan/saved.h"

#include <fmt/format.h>

#include "common/plan/kept.h"

namespace ganymede::plan {

void keep_for_backward(Builder& builder, Operation& forward, SavedBuffers& saved) {
  const config::Config& config = builder.config;
  auto take = [&](BufferKind kind, const char* what, std::int64_t bytes) {
    std::string name = fmt::format("{} layer.{} row {}", what, forward.layer, forward.row);
    forward.takes.push_back(builder.new_buffer(kind, name, bytes, -1, forward.layer, forward.row));
    return forward.takes.back();
  };
  bool moe = config.model.experts > 0 && forward.layer >= config.model.dense_layers;
  if (moe)
    saved.indices =
        take(BufferKind::saved_indices, "indices", std::int64_t{config.data.seq_len} * config.model.top_k * 4);
  if (std::int64_t bytes = kept_activations(config, forward.layer).bytes; bytes > 0)
    saved.activations = take(BufferKind::saved_activations, "activations", bytes);
}

}  // namespace ganymede::plan
