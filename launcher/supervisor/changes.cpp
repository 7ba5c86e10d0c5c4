#include "launcher/supervisor/changes.h"

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/os/files.h"
#include "common/service/settings.h"

namespace ganymede::launcher {

std::string ChangeState::describe() const {
  std::string text;
  for (const Key& one : keys) text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", one.key, one.was, one.now);
  if (!optimizer.empty()) text = "optimizer " + optimizer;
  if (text.empty()) text = fmt::format("change {}", number);
  return from_step == 0 ? text : fmt::format("from step {} on: {}", from_step, text);
}

std::string left_behind(Cells& cells, const std::optional<std::string>& swap) {
  step_protocol::Setting newest = cells.prepared_change();
  auto now = cells.change(cells.change_in_force().number);
  // A swap that was refused, or the return from it, changes nothing.
  bool quiet = !now || newest.state_epoch != now->state_epoch || step_protocol::same_values(newest, *now);
  if (!swap && quiet) return "";
  return fmt::format(
      "the {} that was ordered is not in force yet and ends with this: order it again when the run goes on",
      swap ? fmt::format("swap ({})", *swap) : "change");
}

Changes::Changes(const config::Config& recipe, const service::Job& job, Cells& cells, Epochs& epochs,
                 std::set<std::string> said)
    : recipe_(recipe), job_(job), cells_(cells), epochs_(epochs), said_(std::move(said)) {
  KeptChanges kept = read_changes();
  if (kept.job == job_.id) noted_ = kept.number;
}

config::Config Changes::with(const step_protocol::Setting& setting) {
  config::Config config = epochs_.config_of(setting.state_epoch);
  service::apply(setting, config);
  return config;
}

/// An answer may have been lost, so a person who orders the newest change again learns of it.
ChangeState Changes::repeated(const std::vector<Value>& values) {
  ChangeState newest = state(cells_.prepared_change().number);
  bool same = newest.keys.size() == values.size() && std::ranges::all_of(values, [&](const Value& one) {
                return std::ranges::find(newest.keys, one.key, &ChangeState::Key::key) != newest.keys.end();
              });
  return same || !newest.in_force ? newest : ChangeState{};
}

ChangeState Changes::order(const std::vector<Value>& values, bool ending) {
  if (values.empty()) fail_usage("A change names at least one key.");
  step_protocol::Setting newest = cells_.prepared_change();
  config::Config wanted = with(newest);
  for (const Value& one : values) service::change(wanted, one.key, one.value);
  step_protocol::Setting setting = service::setting_of(wanted);
  setting.state_epoch = newest.state_epoch;
  if (step_protocol::same_values(setting, newest)) return repeated(values);
  if (ending) fail("The run is ending; nothing is changed any more.");
  require_none_under_way();
  setting.number = newest.number + 1;
  cells_.prepare_change(setting);
  ChangeState ordered = state(setting.number);
  log::info("change {} was ordered: {}", setting.number, ordered.describe());
  return ordered;
}

void Changes::require_none_under_way() {
  step_protocol::Setting newest = cells_.prepared_change();
  if (cells_.change_in_force().number == newest.number) return;
  fail("Change {} ({}) is still under way: order the next one when it is in force.", newest.number,
       state(newest.number).describe());
}

bool Changes::restores() const {
  std::uint64_t newest = cells_.prepared_change().number;
  return cells_.change_in_force().number != newest && is_quiet(newest);
}

std::uint64_t Changes::configuration_hash() {
  auto setting = cells_.change(cells_.change_in_force().number);
  GANYMEDE_CHECK(setting, "the setting in force does not lie in its slot");
  return hash64(config::effective(with(*setting)));
}

std::uint64_t Changes::prepare_swap(std::uint64_t epoch, std::uint64_t warm_steps) {
  require_none_under_way();
  step_protocol::Setting setting = service::setting_of(epochs_.config_of(epoch));
  setting.number = cells_.prepared_change().number + 1;
  setting.state_epoch = epoch;
  setting.warm_steps = warm_steps;
  cells_.prepare_change(setting);
  log::info("change {} was ordered: state epoch {}", setting.number, epoch);
  return setting.number;
}

void Changes::prepare_again(std::uint64_t refused) {
  step_protocol::InForce newest = cells_.change_in_force();
  auto setting = cells_.change(newest.number);
  GANYMEDE_CHECK(setting, "the setting of change {}, which is in force, does not lie in its slot", newest.number);
  setting->number = refused + 1;
  setting->warm_steps = 0;
  cells_.prepare_change(*setting);
}

ChangeState Changes::state(std::uint64_t number) {
  if (number > cells_.prepared_change().number) fail("There was no change {} in this job.", number);
  step_protocol::InForce newest = cells_.change_in_force();
  ChangeState state;
  state.number = number;
  state.in_force = newest.number >= number;
  fill_difference(state);
  if (newest.number == number) state.from_step = newest.since_step;
  if (auto known = from_.find(number); known != from_.end()) state.from_step = known->second;
  return state;
}

std::optional<step_protocol::Setting> Changes::prepared() const {
  step_protocol::Setting newest = cells_.prepared_change();
  if (newest.number == 0) return std::nullopt;
  return newest;
}

/// It changes nothing: a swap that was refused, or the return to what is in force after it.
bool Changes::is_quiet(std::uint64_t number) const {
  const auto* record = cells_.record_of(cells_.decided_step());
  std::uint64_t refused = record ? record->refused_change : 0;
  return refused > 0 && (number == refused || number == refused + 1);
}

std::vector<ChangeState> Changes::note() {
  step_protocol::InForce newest = cells_.change_in_force();
  if (newest.number <= noted_) return {};
  auto setting = cells_.change(newest.number);
  GANYMEDE_CHECK(setting, "the setting of change {}, which is in force, does not lie in its slot", newest.number);
  write(*setting);
  from_[newest.number] = newest.since_step;
  std::vector<ChangeState> changes;
  for (std::uint64_t number = noted_ + 1; number <= newest.number; ++number)
    if (!is_quiet(number)) changes.push_back(state(number));
  noted_ = newest.number;
  return changes;
}

/// changes.json first: a launcher that dies in between does it again, and knows from it what was given.
void Changes::write(const step_protocol::Setting& setting) {
  config::Config config = with(setting);
  KeptChanges kept = read_changes();
  if (kept.job != job_.id) kept.epoch = 0;
  if (setting.state_epoch != kept.epoch) note_swap(kept, setting.state_epoch, config.optimizer.name, recipe_, said_);
  std::map<std::string, double> before = service::changeable_values(epochs_.config_of(setting.state_epoch));
  for (const auto& [key, value] : service::changeable_values(config)) {
    if (value != before[key]) note_change(kept, key, before[key], said_);
    if (kept.given.contains(key)) kept.now[key] = value;
  }
  kept.job = job_.id;
  kept.number = setting.number;
  write_changes(kept);
  os::write_file_atomically(service::config_file, config::effective(config));
}

void Changes::fill_difference(ChangeState& state) {
  auto before = state.number > 0 ? cells_.change(state.number - 1) : std::nullopt, after = cells_.change(state.number);
  if (!before || !after) return;
  if (before->state_epoch != after->state_epoch) {
    const config::Config* was = epochs_.find_config(before->state_epoch);
    const std::string& is = epochs_.config_of(after->state_epoch).optimizer.name;
    state.optimizer = was ? fmt::format("{} → {}", was->optimizer.name, is) : is;
    return;
  }
  std::map<std::string, double> was = service::changeable_values(with(*before));
  for (const auto& [key, value] : service::changeable_values(with(*after)))
    if (value != was[key]) state.keys.push_back({key, was[key], value});
}

}  // namespace ganymede::launcher
