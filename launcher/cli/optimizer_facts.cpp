#include "launcher/cli/optimizer_facts.h"

#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/run_command.h"
#include "launcher/cli/ask_sibling.h"

namespace ganymede::cli {
namespace {

constexpr double describe_seconds = 20;

}  // namespace

std::vector<placement::OptimizerFacts> optimizer_facts(const std::string& recipe,
                                                       const std::vector<std::string>& settings) {
  std::vector<std::string> arguments = {"ganymede-optimizer", "check", recipe, "--json"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  std::string text = ask_sibling(arguments, describe_seconds);
  std::vector<placement::OptimizerFacts> facts;
  try {
    auto object = nlohmann::json::parse(text);
    for (const auto& plugin : object.at("plugins"))
      facts.push_back({plugin.at("name"), plugin.at("slots"), plugin.at("matrices"), plugin.at("row_slots"),
                       plugin.at("updates_matrix"), plugin.at("reductions")});
  } catch (const nlohmann::json::exception& error) {
    fail("ganymede-optimizer does not describe the optimizers of {} as expected: {}.", recipe, sentence_of(error));
  }
  return facts;
}

}  // namespace ganymede::cli
