#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

/// One key of the configuration, tied to a member of one Config. Inside common/config only.
namespace ganymede::config {

/// A member that takes one of a few names.
struct Choice {
  std::vector<std::string> names;
  std::function<std::size_t()> get;      // index into `names`
  std::function<void(std::size_t)> set;  // index into `names`
};

using Target =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*, std::vector<std::string>*, Choice>;

/// Upper end of a whole number that has no other: no 64 bits with a sign hold more.
constexpr double endless = 0x1p63;

/// Ends of a range that the key itself does not have.
constexpr double without_end = 1e300;

/// What a number may be; not looked at for other types. NaN and infinity are never allowed.
struct Range {
  double least = 0, most = 0;
  bool above_least = false;  // `least` itself is not allowed
  bool holds(double value) const { return value >= least && value <= most && !(above_least && value == least); }
  std::string describe() const;  // "1 to 65536", "above 0 and up to 1"
};

struct Field {
  std::string key;  // "section.name", or "name" at the top
  Target target;
  Range range;
  std::string help;
};

/// Type of a field in words for a person.
std::string type_name(const Field& field);
/// What its value may be, beyond the type; empty: anything.
std::string allowed(const Field& field);
/// Its value as TOML; parsing that gives the same bits.
std::string to_toml(const Field& field);
/// A TOML string literal of `text`, quotes included.
std::string toml_text(const std::string& text);

}  // namespace ganymede::config
