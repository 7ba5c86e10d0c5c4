#pragma once

#include <cstdint>
#include <vector>

#include "common/msg/message.h"

namespace ganymede::fuzz {

/// One valid message of every kind that has texts, lists or enums, and some without.
std::vector<msg::Message> valid_messages();

/// Reads every text, list and enum of a message, as the hungriest handler would. The number means nothing.
std::uint64_t read_all(const msg::Message& message);

}  // namespace ganymede::fuzz
