#include "common/config/assign.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/base/error.h"
#include "common/base/text.h"

namespace ganymede::config {
namespace {

struct Assignment {
  const Field& field;
  const Value& value;
  const std::string& where;

  [[noreturn]] void wrong_type(std::string_view wanted) const {
    fail_usage("{}: key '{}' has to be {}, not {}.", where, field.key, wanted, describe(value));
  }

  void check_range(double number, const std::string& shown) const {
    if (!std::isfinite(number) || !field.range.holds(number)) out_of_range(shown);
  }

  [[noreturn]] void out_of_range(const std::string& shown) const {
    fail_usage("{}: key '{}' is {}, but has to be {}.", where, field.key, shown, field.range.describe());
  }

  template <class Whole>
  void whole(Whole* member) const {
    if (const auto* large = std::get_if<TooLarge>(&value)) out_of_range(large->digits);
    const auto* number = std::get_if<std::int64_t>(&value);
    if (!number) wrong_type("a whole number");
    check_range(static_cast<double>(*number), std::to_string(*number));
    *member = static_cast<Whole>(*number);
  }

  void operator()(int* member) const { whole(member); }
  void operator()(std::int64_t* member) const { whole(member); }
  void operator()(std::uint64_t* member) const { whole(member); }

  void operator()(double* member) const {
    double number = 0;
    if (const auto* v = std::get_if<double>(&value)) {
      number = *v;
    } else if (const auto* w = std::get_if<std::int64_t>(&value)) {
      number = static_cast<double>(*w);
    } else if (const auto* large = std::get_if<TooLarge>(&value)) {
      out_of_range(large->digits);
    } else {
      wrong_type("a number");
    }
    check_range(number, fmt::format("{}", number));
    *member = number;
  }

  void operator()(bool* member) const {
    const auto* v = std::get_if<bool>(&value);
    if (!v) wrong_type("true or false");
    *member = *v;
  }

  void operator()(std::string* member) const {
    const auto* v = std::get_if<std::string>(&value);
    if (!v) wrong_type("text in quotes");
    check_text(*v);
    *member = *v;
  }

  void operator()(std::vector<std::string>* member) const {
    const auto* v = std::get_if<std::vector<std::string>>(&value);
    if (!v) wrong_type("a list of texts like [\"a\", \"b\"]");
    for (const auto& text : *v) check_text(text);
    *member = *v;
  }

  void operator()(const Choice& choice) const {
    std::string wanted = fmt::format("one of \"{}\"", fmt::join(choice.names, "\", \""));
    const auto* v = std::get_if<std::string>(&value);
    if (!v) wrong_type(wanted);
    auto found = std::find(choice.names.begin(), choice.names.end(), *v);
    if (found == choice.names.end()) {
      std::string near = nearest(*v, choice.names);
      fail_usage("{}: key '{}' is \"{}\", but has to be {}{}", where, field.key, *v, wanted,
                 near.empty() || choice.names.size() == 1 ? "." : fmt::format("; did you mean \"{}\"?", near));
    }
    choice.set(static_cast<std::size_t>(found - choice.names.begin()));
  }

  /// Texts become file names and arguments of programs.
  void check_text(const std::string& text) const {
    if (text.find('\0') == std::string::npos) return;
    fail_usage("{}: key '{}' has a zero byte in its text.", where, field.key);
  }
};

}  // namespace

void assign(const Field& field, const Value& value, const std::string& where) {
  std::visit(Assignment{field, value, where}, field.target);
}

std::string describe(const Value& value) {
  if (const auto* v = std::get_if<bool>(&value)) return *v ? "true" : "false";
  if (const auto* v = std::get_if<std::int64_t>(&value)) return fmt::format("the number {}", *v);
  if (const auto* v = std::get_if<double>(&value)) return fmt::format("the number {}", *v);
  if (const auto* v = std::get_if<std::string>(&value)) return "the text " + toml_text(*v);
  if (std::holds_alternative<std::vector<std::string>>(value)) return "a list";
  if (const auto* v = std::get_if<TooLarge>(&value)) return fmt::format("the number {}", v->digits);
  return std::get<Unfit>(value).what;
}

}  // namespace ganymede::config
