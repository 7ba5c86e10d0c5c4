#include "tests/unit/optimizer/lone_context.h"

namespace ganymede::optimizer {

std::string built_in_plugins() { return GANYMEDE_BINARY_DIR "/plugins"; }

}  // namespace ganymede::optimizer
