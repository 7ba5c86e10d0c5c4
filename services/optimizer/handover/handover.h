#pragma once

#include <cstdint>
#include <functional>

#include "common/newton_schulz/orthogonalise.h"
#include "common/service/service.h"

namespace ganymede::optimizer {

/// newton_schulz.where = optimizer: the worker hands batches of whole, equal matrices over in the segment `matrices`
/// (common/cell/handover.h), and this side orthogonalises them through CBLAS in fp32.

/// Answers one request, if there is one that has no answer yet; a successor answers again what its predecessor left.
/// Returns whether there was one. Throws Error for a request that the segment cannot hold.
bool answer_handover(shm::Segment& matrices, newton_schulz::Products& products, const newton_schulz::Settings& settings,
                     newton_schulz::Workspace& workspace);

/// Answers until the service has to finish or `ended` says so; returns at once where the worker does it. Runs in a
/// thread beside `serve` of the same epoch. Throws Error.
void serve_handovers(service::Context& context, std::uint64_t epoch, const std::function<bool()>& ended);

}  // namespace ganymede::optimizer
