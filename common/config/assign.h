#pragma once

#include "common/config/field.h"
#include "common/config/toml_reader.h"

namespace ganymede::config {

/// Sets the member of a field. Throws Error(usage) that begins with `where` and names key, value and what is allowed
/// when the type or the range does not fit.
void assign(const Field& field, const Value& value, const std::string& where);

/// A value in words: `the text "abc"`, `the number 1.5`.
std::string describe(const Value& value);

}  // namespace ganymede::config
