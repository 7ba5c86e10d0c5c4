#include "launcher/cli/ctl_set.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/config/fields.h"
#include "common/service/run_directory.h"
#include "launcher/cli/ask_launcher.h"
#include "launcher/cli/ask_sibling.h"
#include "launcher/supervisor/changes.h"

namespace ganymede::cli {
namespace {

using flatbuffers::FlatBufferBuilder;
using Values = std::vector<std::pair<std::string, double>>;

constexpr auto look_every = std::chrono::milliseconds(100);
constexpr double check_seconds = 60;

/// "optimizer." may be left out: nothing else can change.
std::string whole_key(const std::string& key) {
  config::Config config;
  bool whole = std::ranges::any_of(config::fields(config), [&](const auto& field) { return field.key == key; });
  return whole || key.starts_with("optimizer.") ? key : "optimizer." + key;
}

std::pair<std::string, double> read_change(const std::string& text) {
  std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail_usage("{}: a change is written KEY=VALUE, for example lr=3e-4.", text);
  const char *begin = text.data() + equals + 1, *end = text.data() + text.size();
  double value = 0;
  auto [stopped, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stopped != end || begin == end)
    fail_usage(
        "{}: that value is no number; only keys with numbers can change while a run runs: optimizer.lr, weight_decay "
        "and clip_norm, those of a group, and the optimizers' own.",
        text);
  return {whole_key(text.substr(0, equals)), value};
}

/// The same twice is one; whoever says two things has meant one of them.
void add_change(Values& values, const std::string& text) {
  auto [key, value] = read_change(text);
  for (const auto& [other, before] : values) {
    if (other != key) continue;
    if (before == value) return;
    fail_usage("Key '{}' is given twice, as {} and as {}: give it once.", key, before, value);
  }
  values.emplace_back(key, value);
}

/// Only the plugin knows the ranges of its keys ("optimizer.adamw.beta1").
void check_with_plugin(const Values& values) {
  std::vector<std::string> arguments = {"ganymede-optimizer", "check", service::config_file, "--running"};
  for (const auto& [key, value] : values)
    if (key.starts_with("optimizer.") && key.find('.', key.find('.') + 1) != std::string::npos)
      arguments.insert(arguments.end(), {"--set", fmt::format("{}={}", key, value)});
  if (arguments.size() > 4) ask_sibling(std::move(arguments), check_seconds);
}

launcher::ChangeState request(std::uint64_t number, const Values& values) {
  msg::Message reply = ask([&](FlatBufferBuilder& builder) {
    std::vector<flatbuffers::Offset<fbs::Named>> keys;
    for (const auto& [key, value] : values) keys.push_back(fbs::CreateNamed(builder, builder.CreateString(key), value));
    return msg::Message::body(fbs::CreateChangeRequest(builder, number, builder.CreateVector(keys)));
  });
  const auto* receipt = reply.as<fbs::ChangeReceipt>();
  if (!receipt) fail("The launcher's answer is not about a change: are the programs of one build?");
  launcher::ChangeState state{
      .number = receipt->number(), .in_force = receipt->in_force(), .from_step = receipt->from_step(), .keys = {}};
  for (const fbs::ChangedKey* one : *receipt->keys()) state.keys.push_back({one->key()->str(), one->was(), one->now()});
  return state;
}

}  // namespace

void set(const std::string& run, const std::vector<std::string>& changes, double seconds) {
  Values values;
  for (const std::string& text : changes) add_change(values, text);
  require_alive(run);
  check_with_plugin(values);
  launcher::ChangeState state = request(0, values);
  if (state.number == 0) return fmt::print("the run has these values already\n");
  if (seconds == 0 && !state.in_force) return fmt::print("ordered: {}\n", state.describe());
  Deadline deadline = Deadline::after_seconds(seconds);
  while (!state.in_force) {
    if (deadline.passed())
      fail(
          "Change {} ({}) is not in force after {}: it stays ordered and takes effect in one of the next steps; see "
          "`ganymede ctl {} status`.",
          state.number, state.describe(), human_seconds(seconds), run);
    std::this_thread::sleep_for(look_every);
    state = request(state.number, {});
  }
  fmt::print("{}\n", state.describe());
}

}  // namespace ganymede::cli
