#include "launcher/keeper/ended_launcher.h"

#include <fmt/format.h>

#include <cstdlib>

namespace ganymede::keeper {
namespace {

constexpr const char* variable = "GANYMEDE_ENDED_LAUNCHER";

}  // namespace

std::pair<std::string, std::string> tell_of(const os::Ending& ending, double now) {
  return {variable, fmt::format("{:.6f} {}", now, ending.describe())};
}

std::optional<EndedLauncher> ended_launcher() {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  char* cause = nullptr;
  double ended = std::strtod(text, &cause);
  if (cause == text || *cause != ' ') return std::nullopt;  // somebody else's
  return EndedLauncher{ended, cause + 1};
}

}  // namespace ganymede::keeper
