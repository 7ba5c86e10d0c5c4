#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <concepts>
#include <string>
#include <vector>

#include "common/base/text.h"

/// What all command lines of Ganymede say alike.
namespace ganymede::command_line {

/// A check that the value of an option is a number from `least` to `most`; NaN is none.
template <class Number>
CLI::Validator between(Number least, Number most) {
  const char* kind = std::integral<Number> ? "a whole number" : "a number";
  auto check = [=](std::string& text) {
    Number value{};
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
    return fmt::format("{} is not {} from {} to {}", text, kind, least, most);
  };
  return {check, fmt::format("{} to {}", least, most)};
}

/// One sentence without its full stop on what is wrong with a command line that `app` refused: an unknown command is
/// named, with the one that was probably meant.
inline std::string fault(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* asked = &app;
  while (!asked->get_subcommands().empty()) asked = asked->get_subcommands().front();
  std::vector<std::string> unknown = asked->remaining(), names;
  if (asked->get_require_subcommand_min() == 0 || unknown.empty()) return error.what();
  for (const CLI::App* command : asked->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  std::string near = nearest(unknown.front(), names);
  if (near.empty())
    return fmt::format("'{}' is not known; the commands are {}", unknown.front(), fmt::join(names, ", "));
  return fmt::format("'{}' is not known; did you mean '{}'?", unknown.front(), near);
}

}  // namespace ganymede::command_line
