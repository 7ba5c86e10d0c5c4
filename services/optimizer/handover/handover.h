#pragma once

#include <cstdint>
#include <functional>

#include "common/service/service.h"
#include "services/optimizer/matrix_update.h"

namespace ganymede::optimizer {

/// Whole matrices that the worker hands over in the segment `matrices` (common/cell/handover.h): this side
/// orthogonalises them through CBLAS in fp32 (newton_schulz.where = optimizer), and has update_matrix of their plugin.

/// Answers until the service has to finish or `ended` says so; returns at once where nothing is handed over. Runs in a
/// thread beside `serve` of the same epoch. Throws Error.
void serve_handovers(service::Context& context, std::uint64_t epoch, const std::function<bool()>& ended);

}  // namespace ganymede::optimizer
