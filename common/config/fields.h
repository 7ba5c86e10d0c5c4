#pragma once

#include "common/config/config.h"
#include "common/config/field.h"

namespace ganymede::config {

/// Every key of the configuration once, in the order of the effective configuration: sections are contiguous, keys
/// without a section come first. The fields point into `config`, which has to outlive them.
std::vector<Field> fields(Config& config);

/// "model" of "model.hidden", "" of "recompute".
std::string section_of(const std::string& key);
/// "hidden" of "model.hidden".
std::string name_of(const std::string& key);

}  // namespace ganymede::config
