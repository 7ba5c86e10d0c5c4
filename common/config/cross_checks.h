#pragma once

#include "common/config/config.h"

#include <functional>

namespace ganymede::config {

/// Where a key got its value: "recipe.toml:12", "--set a.b=c", or the file's name when the standard value holds.
using Origin = std::function<std::string(const std::string& key)>;

/// What keys demand of one another. Throws Error(usage) for the first that does not hold.
void cross_check(const Config& config, const Origin& origin);

/// The part of it that is about what sizes make together (size_checks.cpp).
void check_sizes(const Config& config, const Origin& origin);

}  // namespace ganymede::config
