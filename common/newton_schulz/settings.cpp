#include "common/newton_schulz/settings.h"

namespace ganymede::newton_schulz {

Settings settings_of(const config::NewtonSchulz& config) {
  return {parse_schedule("newton_schulz.coefficients", config.coefficients), static_cast<Form>(config.form)};
}

}  // namespace ganymede::newton_schulz
