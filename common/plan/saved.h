#pragma once

#include "common/plan/builder.h"

namespace ganymede::plan {

/// Buffers that keep a layer and row for its backward; -1: none.
struct SavedBuffers {
  int input = -1, indices = -1, activations = -1, arena = -1;
};

/// Lets a layer's forward of a row take what is kept of it besides its input: the router's indices, if it has a router,
/// and the activations that config.recompute keeps.
void keep_for_backward(Builder& builder, Operation& forward, SavedBuffers& saved);

}  // namespace ganymede::plan
