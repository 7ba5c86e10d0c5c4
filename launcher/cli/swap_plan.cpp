#include "launcher/cli/swap_plan.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/run_command.h"
#include "common/cell/layouts.h"
#include "common/os/files.h"
#include "common/service/service.h"
#include "common/shm/keeper_client.h"
#include "common/step_protocol/change.h"
#include "launcher/cli/ask_sibling.h"
#include "launcher/supervisor/swap_config.h"

namespace ganymede::cli {
namespace {

constexpr double own_seconds = 1;  // of a program beside what it is given for plugins

Deadline soon() { return Deadline::after_seconds(10); }

/// A file of the run directory that is gone with this object.
struct Scratch {
  std::string path = fmt::format("{}/swap.{}.toml", service::log_folder, getpid());
  Scratch() = default;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

nlohmann::json ask_optimizer(const config::Config& config, const std::string& name, const std::string& file, bool copy,
                             double seconds) {
  os::write_file_atomically(file, config::effective(config));
  std::vector<std::string> arguments = {
      "ganymede-optimizer", "swap", "--run",     std::filesystem::current_path().string(),
      "--config",           file,   "--seconds", fmt::format("{:.3f}", seconds)};
  if (!copy) arguments.emplace_back("--dry-run");
  std::string text;
  try {
    text = ask_sibling(arguments, seconds + own_seconds);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("Optimizer '{}' cannot be prepared: {}", name, error.what()));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    fail("What ganymede-optimizer swap printed is not understood ({}): are the programs of one build?",
         sentence_of(error));
  }
}

/// The state of the lowest rank here, for the ages of its slots.
class Ages {
 public:
  Ages() {
    int rank = -1;
    for (const auto& held : keeper_.list(soon()))
      if (held.name.ends_with("/control") && rank < 0)
        rank = std::atoi(held.name.c_str() + std::string("rank.").size());
    if (rank < 0) fail("The run is starting or ending: it has no cell now. Ask again in a moment.");
    shm::Segment segment = attach(shm::held_name(rank, "control"));
    const step_protocol::ControlBlock& block = *service::control_of(segment).block;
    std::uint64_t step = block.decided_step.load(std::memory_order_acquire);
    step_protocol::DecisionRecord record = block.record_of(step);
    updates_ = step > 0 && record.step == step && record.intact() ? record.updates : block.loaded_updates;
    std::string state = shm::state_name(step_protocol::epoch_in_force(block));
    state_.emplace(attach(shm::held_name(rank, state)));
    began_ = state_->span<std::uint64_t>("began");
    columns_ = static_cast<std::size_t>(state_->layout().entry("began").shape.at(1));
  }

  std::uint64_t of(std::size_t parameter, std::size_t column) const {
    return updates_ - std::min(updates_, began_[parameter * columns_ + column]);
  }

 private:
  shm::Segment attach(const std::string& name) const {
    os::Fd fd = keeper_.get(name, soon());
    return shm::Segment::attach(fd.get(), shm::Segment::describe(fd.get()), service::read_job().id);
  }

  shm::KeeperClient keeper_;
  std::uint64_t updates_ = 0;
  std::optional<shm::Segment> state_;
  std::span<const std::uint64_t> began_;
  std::size_t columns_ = 0;
};

SwapPlan::Part part_of(const nlohmann::json& object, const Ages& ages) {
  SwapPlan::Part part{object.at("from"), object.at("to"), object.at("parameters"), {}};
  auto parameter = object.at("parameter").get<std::size_t>();
  for (const auto& slot : object.at("slots")) {
    SwapPlan::Slot& one = part.slots.emplace_back();
    one.name = slot.at("name");
    one.per_row = slot.at("per_row");
    if (slot.at("from").is_null()) continue;
    one.from = slot.at("from");
    one.age = ages.of(parameter, slot.at("column").get<std::size_t>());
  }
  return part;
}

service::JobPlugin plugin_of(const nlohmann::json& plugin) {
  placement::OptimizerFacts facts{plugin.at("name"),      plugin.at("slots"),          plugin.at("matrices"),
                                  plugin.at("row_slots"), plugin.at("updates_matrix"), plugin.at("reductions")};
  return {std::move(facts), plugin.at("file"), std::stoull(plugin.at("hash").get<std::string>(), nullptr, 16),
          plugin.at("version")};
}

/// Of the group `name`, or of [optimizer] where there is none, or none with a rate of its own.
double rate_of(const config::Optimizer& optimizer, const std::string& name) {
  auto group = optimizer.groups.find(name);
  return group != optimizer.groups.end() && group->second.lr >= 0 ? group->second.lr : optimizer.lr;
}

}  // namespace

SwapPlan plan_swap(const std::string& name, const std::vector<std::string>& settings, bool copy, double seconds) {
  Scratch scratch;
  std::uint64_t base = hash64(os::read_file(service::config_file));
  config::Config in_force = config::load(service::config_file, {});
  config::Config config = launcher::swapped_config(in_force, name, settings, scratch.path);
  nlohmann::json answer = ask_optimizer(config, name, scratch.path, copy, seconds);
  SwapPlan plan;
  plan.base = base;
  plan.before = in_force.optimizer.name;
  plan.after = name;
  std::vector<placement::OptimizerFacts> facts;
  for (const auto& plugin : answer.at("plugins")) {
    plan.plugins.push_back(plugin_of(plugin));
    facts.push_back(plan.plugins.back().facts);
  }
  config.optimizer.hyper.merge(answer.at("hyper").get<std::map<std::string, double>>());
  launcher::add_rest(config, in_force, facts);
  std::int64_t warm_steps = config.swap.warm_steps;
  config.swap = in_force.swap;  // what was set is for this swap alone
  plan.configuration = config::effective(config);
  plan.rates.push_back({"", in_force.optimizer.lr, config.optimizer.lr});
  for (const auto& [group, own] : config.optimizer.groups)
    plan.rates.push_back({group, rate_of(in_force.optimizer, group), rate_of(config.optimizer, group)});
  Ages ages;
  for (const auto& part : answer.at("parts")) plan.parts.push_back(part_of(part, ages));
  plan.warm_steps =
      warm_steps >= 0 ? static_cast<std::uint64_t>(warm_steps) : answer.at("warm_steps").get<std::uint64_t>();
  return plan;
}

bool starts_empty(const SwapPlan& plan) {
  return std::ranges::any_of(plan.parts, [](const auto& part) {
    return std::ranges::any_of(part.slots, [](const auto& slot) { return slot.from.empty() && !slot.per_row; });
  });
}

std::vector<std::string> part_lines(const SwapPlan& plan) {
  std::vector<std::string> lines;
  for (const SwapPlan::Part& part : plan.parts) {
    std::string text;
    for (const SwapPlan::Slot& slot : part.slots) {
      std::string how = slot.from.empty() ? "starts empty"
                                          : fmt::format("takes over {}, {} {} old", slot.from, slot.age,
                                                        slot.age == 1 ? "update" : "updates");
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", slot.name, how);
    }
    lines.push_back(fmt::format("{} {} {} → {}: {}", part.parameters, part.parameters == 1 ? "parameter" : "parameters",
                                part.from, part.to, text.empty() ? "no state" : text));
  }
  return lines;
}

std::string rates_line(const SwapPlan& plan) {
  std::string text;
  for (const SwapPlan::Rate& rate : plan.rates) {
    std::string name = rate.group.empty() ? "learning rate" : "; " + rate.group;
    text += rate.before == rate.after ? fmt::format("{} stays {}", name, rate.after)
                                      : fmt::format("{} {} → {}", name, rate.before, rate.after);
  }
  return text;
}

nlohmann::ordered_json rates_json(const SwapPlan& plan) {
  auto rates = nlohmann::ordered_json::array();
  for (const SwapPlan::Rate& rate : plan.rates) {
    nlohmann::ordered_json one = {{"group", nullptr}, {"before", rate.before}, {"after", rate.after}};
    if (!rate.group.empty()) one["group"] = rate.group;
    rates.push_back(std::move(one));
  }
  return rates;
}

nlohmann::ordered_json parts_json(const SwapPlan& plan) {
  auto parts = nlohmann::ordered_json::array();
  for (const SwapPlan::Part& part : plan.parts) {
    auto slots = nlohmann::ordered_json::array();
    for (const SwapPlan::Slot& slot : part.slots) {
      nlohmann::ordered_json one = {{"name", slot.name}, {"from", nullptr}, {"age", slot.age}};
      if (!slot.from.empty()) one["from"] = slot.from;
      slots.push_back(std::move(one));
    }
    parts.push_back({{"from", part.from}, {"to", part.to}, {"parameters", part.parameters}, {"slots", slots}});
  }
  return parts;
}

}  // namespace ganymede::cli
