#pragma once

#include "services/optimizer/plugins/table.h"

/// The hyper-parameters that every kind of Muon has, in the order in which muon_kernel.h reads them.
namespace ganymede::muon {

constexpr GanymedeHyperParameter momentum_key = plugins::number("momentum", "decay of the momentum", 0.95, 0, 0.999999);
constexpr GanymedeHyperParameter nesterov_key =
    plugins::whole_number("nesterov", "1: Nesterov's momentum; 0: the plain one", 1, 0, 1);
constexpr GanymedeHyperParameter scale_rule_key = plugins::whole_number(
    "scale_rule", "of the step; 0: sqrt(max(1, rows / columns)); 1: 0.2 sqrt(max(rows, columns)), AdamW's RMS", 0, 0,
    1);

}  // namespace ganymede::muon
