#include "common/config/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

namespace ganymede::config {
namespace {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;

/// Shortest digits that read back as the same double, always with a mark of a fraction.
std::string to_toml(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

/// Whole numbers without an exponent.
std::string plain(double value) {
  if (value >= endless) return std::to_string(std::numeric_limits<std::int64_t>::max());
  bool whole = std::abs(value) < 1e15 && value == static_cast<double>(static_cast<std::int64_t>(value));
  return whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}

}  // namespace

std::string Range::describe() const {
  if (least == -without_end && most == without_end) return "a finite number";
  if (above_least) return fmt::format("above {} and up to {}", plain(least), plain(most));
  return fmt::format("{} to {}", plain(least), plain(most));
}

std::string type_name(const Field& field) {
  return std::visit(
      Overload{[](bool*) { return "true or false"; }, [](double*) { return "number"; },
               [](std::string*) { return "text"; }, [](std::vector<std::string>*) { return "list of texts"; },
               [](const Choice&) { return "choice"; }, [](auto*) { return "whole number"; }},
      field.target);
}

std::string allowed(const Field& field) {
  return std::visit(Overload{[](bool*) { return std::string(); }, [](std::string*) { return std::string(); },
                             [](std::vector<std::string>*) { return std::string(); },
                             [](const Choice& c) { return fmt::format("{}", fmt::join(c.names, " or ")); },
                             [&](auto*) { return field.range.describe(); }},
                    field.target);
}

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string to_toml(const Field& field) {
  return std::visit(
      Overload{[](bool* v) { return std::string(*v ? "true" : "false"); }, [](double* v) { return to_toml(*v); },
               [](std::string* v) { return toml_text(*v); },
               [](std::vector<std::string>* v) {
                 std::vector<std::string> items;
                 for (const auto& text : *v) items.push_back(toml_text(text));
                 return fmt::format("[{}]", fmt::join(items, ", "));
               },
               [](const Choice& c) { return toml_text(c.names[c.get()]); }, [](auto* v) { return std::to_string(*v); }},
      field.target);
}

}  // namespace ganymede::config
