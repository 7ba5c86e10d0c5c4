#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <concepts>
#include <string>
#include <vector>

#include "common/base/error.h"
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

/// The command that was asked for.
inline const CLI::App& asked_of(const CLI::App& app) {
  const CLI::App* asked = &app;
  while (!asked->get_subcommands().empty()) asked = asked->get_subcommands().front();
  return *asked;
}

/// The option that was probably meant by one that there is not; empty: none is near.
inline std::string nearest_option(const CLI::App& asked, const std::string& given) {
  std::vector<std::string> names;
  for (const CLI::Option* option : asked.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return nearest(given, names);
}

/// One sentence without its full stop on what is wrong with a command line that `app` refused: an unknown command is
/// named, with the one that was probably meant.
inline std::string fault(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& asked = asked_of(app);
  std::vector<std::string> unknown = asked.remaining(), names;
  if (!unknown.empty() && unknown.front().starts_with("--"))
    if (std::string near = nearest_option(asked, unknown.front()); !near.empty())
      return fmt::format("'{}' is not known; did you mean '{}'?", unknown.front(), near);
  if (asked.get_require_subcommand_min() == 0) return error.what();
  for (const CLI::App* command : asked.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (unknown.empty()) return fmt::format("a command is missing: {}", fmt::join(names, ", "));
  std::string near = nearest(unknown.front(), names);
  if (near.empty())
    return fmt::format("'{}' is not known; the commands are {}", unknown.front(), fmt::join(names, ", "));
  return fmt::format("'{}' is not known; did you mean '{}'?", unknown.front(), near);
}

/// Throws Error(usage) with `fault` and the help of the command that was asked for.
[[noreturn]] inline void refuse(const CLI::App& app, const CLI::ParseError& error) {
  std::string command = app.get_name();
  for (const CLI::App* asked = &app; !asked->get_subcommands().empty();) {
    asked = asked->get_subcommands().front();
    command += " " + asked->get_name();
  }
  fail_usage("{} (see `{} --help`).", fault(app, error), command);
}

}  // namespace ganymede::command_line
