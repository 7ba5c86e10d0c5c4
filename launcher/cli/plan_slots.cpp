#include "launcher/cli/plan_slots.h"

#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/run_command.h"
#include "launcher/cli/ask_sibling.h"

namespace ganymede::cli {
namespace {

constexpr double describe_seconds = 20;

}  // namespace

std::vector<std::string> optimizer_slots(const config::Optimizer& optimizer) {
  std::vector<std::string> arguments = {"ganymede-optimizer", "describe", optimizer.name, "--json"};
  if (!optimizer.plugin_folder.empty()) arguments.insert(arguments.end(), {"--plugins", optimizer.plugin_folder});
  std::string text = ask_sibling(arguments, describe_seconds);
  std::vector<std::string> slots;
  try {
    auto object = nlohmann::json::parse(text);
    for (const auto& slot : object.at("slots")) slots.push_back(slot.at("name").get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    fail("ganymede-optimizer does not describe {} as expected: {}.", optimizer.name, sentence_of(error));
  }
  return slots;
}

}  // namespace ganymede::cli
