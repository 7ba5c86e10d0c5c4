#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/optimizer_abi/ganymede_optimizer.h"

namespace ganymede::vector_units {

/// What one kernel made of one input.
struct Result {
  std::string name;  // says kernel and input: "adamw 17 elements, step 2"
  std::vector<std::byte> bytes;
};

/// The update of one chunk by each optimizer: a kernel's function or another that does the same.
struct Optimizers {
  using Update = void (*)(const GanymedeStep&, const GanymedeChunk&);
  Update adamw, lion, sgd;
};

/// The kernels as they are built for this processor family, on the vector unit that Highway has chosen.
Optimizers kernels();
/// The same arithmetic one element at a time, in the written order: with `fused` every multiply-add rounds once, as all
/// units do that have one; without, twice, as units older than AVX2 do.
Optimizers scalar_reference(bool fused);

/// Three steps of each optimizer over runs of odd lengths that begin anywhere; keyed values of many magnitudes with
/// zeros and subnormal numbers among them.
std::vector<Result> optimizer_results(const Optimizers& optimizers);
/// fp8 and bf16 of common/wire, sums and copies of common/collectives, on keyed values with infinities and NaNs.
/// Nothing in them is fused: the same bits on every unit.
std::vector<Result> wire_results();

}  // namespace ganymede::vector_units
