#include "launcher/supervisor/changes.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/files.h"
#include "common/service/settings.h"

namespace ganymede::launcher {

std::string ChangeState::describe() const {
  std::string text;
  for (const Key& one : keys) text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", one.key, one.was, one.now);
  if (text.empty()) text = fmt::format("change {}", number);
  return from_step == 0 ? text : fmt::format("from step {} on: {}", from_step, text);
}

Changes::Changes(const config::Config& config, const service::Job& job, Cells& cells)
    : config_(config), job_(job), cells_(cells) {
  KeptChanges kept = read_changes();
  if (kept.job == job_.id) noted_ = kept.number;
}

config::Config Changes::with(const step_protocol::Setting& setting) const {
  config::Config config = config_;
  service::apply(setting, config);
  return config;
}

ChangeState Changes::order(const std::vector<Value>& values, bool ending) {
  if (values.empty()) fail_usage("A change names at least one key.");
  step_protocol::Setting newest = cells_.prepared_change();
  config::Config wanted = with(newest);
  for (const Value& one : values) service::change(wanted, one.key, one.value);
  step_protocol::Setting setting = service::setting_of(wanted);
  if (step_protocol::same_values(setting, newest)) return state(newest.number);
  if (ending) fail("The run is ending; nothing is changed any more.");
  if (cells_.change_in_force().number != newest.number)
    fail("Change {} ({}) is still under way: order the next one when it is in force.", newest.number,
         state(newest.number).describe());
  setting.number = newest.number + 1;
  cells_.prepare_change(setting);
  ChangeState ordered = state(setting.number);
  log::info("change {} was ordered: {}", setting.number, ordered.describe());
  return ordered;
}

ChangeState Changes::state(std::uint64_t number) {
  if (number > cells_.prepared_change().number) fail("There was no change {} in this job.", number);
  step_protocol::InForce newest = cells_.change_in_force();
  ChangeState state{.number = number, .in_force = newest.number >= number, .from_step = 0, .keys = keys_of(number)};
  if (newest.number == number) state.from_step = newest.since_step;
  if (auto known = from_.find(number); known != from_.end()) state.from_step = known->second;
  return state;
}

std::optional<step_protocol::Setting> Changes::prepared() const {
  step_protocol::Setting newest = cells_.prepared_change();
  if (newest.number == 0) return std::nullopt;
  return newest;
}

std::vector<ChangeState> Changes::note() {
  step_protocol::InForce newest = cells_.change_in_force();
  if (newest.number <= noted_) return {};
  auto setting = cells_.change(newest.number);
  GANYMEDE_CHECK(setting, "the setting of change {}, which is in force, does not lie in its slot", newest.number);
  write(*setting);
  from_[newest.number] = newest.since_step;
  std::vector<ChangeState> changes;
  for (std::uint64_t number = noted_ + 1; number <= newest.number; ++number) changes.push_back(state(number));
  noted_ = newest.number;
  return changes;
}

/// changes.json first: a launcher that dies in between does it again, and knows from it what was given.
void Changes::write(const step_protocol::Setting& setting) const {
  config::Config config = with(setting);
  KeptChanges kept = read_changes();
  std::map<std::string, double> before = service::changeable_values(config_);
  for (const auto& [key, value] : service::changeable_values(config)) {
    if (value != before[key]) kept.given.emplace(key, before[key]);
    if (kept.given.contains(key)) kept.now[key] = value;
  }
  kept.job = job_.id;
  kept.number = setting.number;
  write_changes(kept);
  os::write_file_atomically(service::config_file, config::effective(config));
}

std::vector<ChangeState::Key> Changes::keys_of(std::uint64_t number) const {
  auto before = number > 0 ? cells_.change(number - 1) : std::nullopt, after = cells_.change(number);
  if (!before || !after) return {};
  std::vector<ChangeState::Key> keys;
  std::map<std::string, double> was = service::changeable_values(with(*before));
  for (const auto& [key, value] : service::changeable_values(with(*after)))
    if (value != was[key]) keys.push_back({key, was[key], value});
  return keys;
}

}  // namespace ganymede::launcher
