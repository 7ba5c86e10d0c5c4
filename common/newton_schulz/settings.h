#pragma once

#include "common/config/config.h"
#include "common/newton_schulz/orthogonalise.h"

namespace ganymede::newton_schulz {

/// What [newton_schulz] of a recipe asks for. Throws a usage Error that names the key, as parse_schedule() does.
Settings settings_of(const config::NewtonSchulz& config);

}  // namespace ganymede::newton_schulz
