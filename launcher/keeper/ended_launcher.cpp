#include "launcher/keeper/ended_launcher.h"

#include <fmt/format.h>

#include <cstdlib>

namespace ganymede::keeper {
namespace {

constexpr const char* variable = "GANYMEDE_ENDED_LAUNCHER";

}  // namespace

std::pair<std::string, std::string> tell_of(const EndedLauncher& launcher) {
  return {variable, fmt::format("{:.6f} {:.6f} {}", launcher.ended, launcher.detect, launcher.cause)};
}

std::optional<EndedLauncher> ended_launcher() {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  char *detect = nullptr, *cause = nullptr;
  double ended = std::strtod(text, &detect);
  if (detect == text || *detect != ' ') return std::nullopt;  // somebody else's
  double detected = std::strtod(detect, &cause);
  if (cause == detect || *cause != ' ') return std::nullopt;
  return EndedLauncher{ended, detected, cause + 1};
}

}  // namespace ganymede::keeper
