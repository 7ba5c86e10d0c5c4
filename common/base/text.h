#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

/// "1.2 GiB", "812 MiB", "64 KiB", "12 B": three significant digits, binary units.
std::string human_bytes(double bytes);
/// "4.2 s", "25 min", "3.1 h", "812 ms".
std::string human_seconds(double seconds);
/// "5,043": thousands separated by commas.
std::string with_commas(std::int64_t value);
/// The candidate with the smallest edit distance to `word`, or "" when none is near (distance > half its length).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ganymede
