#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// The one door to the TOML library.
namespace ganymede::config {

/// A value that no key takes; `what` says it in words ("a date", "a section").
struct Unfit {
  std::string what;
};
/// A whole number that 64 bits with a sign cannot hold, as it is written.
struct TooLarge {
  std::string digits;
};
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, Unfit, TooLarge>;

struct Leaf {
  std::string key;  // "section.name"; deeper tables give more dots
  Value value;
  int line = 0;  // from 1
};

/// All values of a document in the order of their lines. Throws Error(usage) "where:line: …" when it is not TOML.
std::vector<Leaf> read_toml(const std::string& text, const std::string& where);

/// One value as it stands after `key =`; nothing in `error` when it is TOML.
Value read_value(const std::string& text, bool& is_toml);

}  // namespace ganymede::config
