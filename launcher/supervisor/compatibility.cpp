#include "launcher/supervisor/compatibility.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "common/base/error.h"
#include "common/config/fields.h"

namespace ganymede::launcher {

bool is_fixed(const std::string& key) {
  static const std::set<std::string> fixed = {
      "run.seed",     "optimizer.name",     "data.path",          "data.tokenizer",
      "data.seq_len", "data.rows_per_step", "data.balance_group", "data.validation_fraction"};
  std::string name = config::name_of(key);
  bool who_updates = !config::group_name(key).empty() && (name == "match" || name == "optimizer");
  return fixed.contains(key) || config::section_of(key) == "model" || who_updates;
}

namespace {

/// A key that differs between two configurations, with its values as TOML.
struct Difference {
  std::string key, was, is;
};

std::vector<Difference> differences(config::Config before, config::Config now) {
  std::map<std::string, std::string> was;
  for (const config::Field& field : config::fields(before)) was[field.key] = config::to_toml(field);
  std::vector<Difference> all;
  for (const config::Field& field : config::fields(now)) {
    auto found = was.find(field.key);  // a plugin's key may be in one of the two alone
    std::string is = config::to_toml(field);
    if (found != was.end() && found->second != is) all.push_back({field.key, found->second, is});
  }
  return all;
}

}  // namespace

void check_compatible(const config::Config& before, const config::Config& now, const std::string& run) {
  for (const auto& [key, was, is] : differences(before, now)) {
    if (!is_fixed(key)) continue;
    std::string swap = key == "optimizer.name"
                           ? fmt::format("; `ganymede ctl {} swap-optimizer {}` changes it while the job runs", run,
                                         now.optimizer.name)
                           : "";
    fail_usage(
        "Key '{}' is {}, but the run in {} was made with {} and cannot change it: put the old value back, or "
        "begin a new run with another --run{}.",
        key, is, run, was, swap);
  }
}

void check_who_updates(const config::Config& before, const std::vector<placement::OptimizerFacts>& facts_before,
                       const config::Config& now, const std::vector<placement::OptimizerFacts>& facts_now,
                       const std::string& run) {
  std::vector<model_spec::ParameterSpec> parameters = model_spec::parameters(now.model);
  placement::UpdateGroups was = placement::update_groups(before.optimizer, parameters, facts_before);
  placement::UpdateGroups is = placement::update_groups(now.optimizer, parameters, facts_now);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string &old = was.optimizer_of(static_cast<int>(i)).name,
                      &fresh = is.optimizer_of(static_cast<int>(i)).name;
    if (old == fresh) continue;
    fail_usage(
        "{} was updated by optimizer '{}' in the run in {} and would be by '{}' now, which cannot change: put the "
        "groups "
        "[optimizer.group.NAME] back as they were, or begin a new run with another --run.",
        parameters[i].name, old, run, fresh);
  }
}

std::string changed_keys(const config::Config& before, const config::Config& now) {
  std::string text;
  for (const auto& [key, was, is] : differences(before, now))
    if (key != "run.steps") text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", key, was, is);
  return text;
}

void resolve_threads(config::Config& now, const config::Config* before, int cores, int cells) {
  bool same_world = before && before->parallel.ranks == now.parallel.ranks;
  int share = std::max(1, cores / cells);
  auto resolve = [&](int& threads, int earlier, int fresh) {
    if (threads == 0) threads = same_world && earlier > 0 ? earlier : fresh;
  };
  resolve(now.compute.threads, before ? before->compute.threads : 0, share);
  resolve(now.optimizer.threads, before ? before->optimizer.threads : 0, std::max(1, share / 4));
}

std::string shared_cores(const config::Config& config, int cores, int cells) {
  if (config.compute.threads * cells <= cores || config.compute.threads == 1) return "";
  return fmt::format("{} ranks of {} threads each share {} cores; fewer are faster: --set compute.threads={}", cells,
                     config.compute.threads, cores, std::max(1, cores / cells));
}

void check_threads(const config::Config& config, int cores) {
  auto check = [&](const char* key, int threads) {
    if (threads <= cores) return;
    fail_usage(
        "Key '{}' is {}, but a process can use only {} {} here, and more threads than cores make it slower: --set "
        "{}={} or fewer.",
        key, threads, cores, cores == 1 ? "core" : "cores", key, cores);
  };
  check("compute.threads", config.compute.threads);
  check("optimizer.threads", config.optimizer.threads);
}

void check_ctas(const config::Config& config) {
  config::Config copy = config;
  for (const config::Field& field : config::fields(copy)) {
    if (config::section_of(field.key) != "collectives.max_ctas") continue;
    if (int cap = *std::get<int*>(field.target); cap != 0)
      fail_usage(
          "Key '{}' is {}, but shared memory and gloo, which this run's ranks communicate by, take no CTAs of a GPU: "
          "leave it 0 (ganymede plan says what a cap would do).",
          field.key, cap);
  }
}

}  // namespace ganymede::launcher
