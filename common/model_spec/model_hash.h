#pragma once

#include <string>
#include <vector>

#include "common/model_spec/model_spec.h"

namespace ganymede::model_spec {

/// Identity of a model's parameters: over their names and shapes, 32 hexadecimal digits. Checkpoints carry it.
std::string model_hash(const std::vector<ParameterSpec>& parameters);

}  // namespace ganymede::model_spec
