#include "launcher/supervisor/compatibility.h"

#include <algorithm>
#include <set>

#include "common/base/error.h"
#include "common/config/fields.h"

namespace ganymede::launcher {

bool is_fixed(const std::string& key) {
  static const std::set<std::string> fixed = {
      "run.seed",     "optimizer.name",     "data.path",          "data.tokenizer",
      "data.seq_len", "data.rows_per_step", "data.balance_group", "data.validation_fraction"};
  return fixed.contains(key) || config::section_of(key) == "model";
}

void check_compatible(const config::Config& before, const config::Config& now, const std::string& run) {
  config::Config old_copy = before, new_copy = now;
  auto old_fields = config::fields(old_copy), new_fields = config::fields(new_copy);
  for (std::size_t i = 0; i < old_fields.size(); ++i) {
    if (!is_fixed(old_fields[i].key)) continue;
    std::string was = config::to_toml(old_fields[i]), is = config::to_toml(new_fields[i]);
    if (was == is) continue;
    fail_usage(
        "Key '{}' is {}, but the run in {} was made with {} and cannot change it: put the old value back, or "
        "begin a new run with another --run.",
        old_fields[i].key, is, run, was);
  }
}

std::string changed_keys(const config::Config& before, const config::Config& now) {
  config::Config old_copy = before, new_copy = now;
  auto old_fields = config::fields(old_copy), new_fields = config::fields(new_copy);
  std::string text;
  for (std::size_t i = 0; i < old_fields.size(); ++i) {
    std::string was = config::to_toml(old_fields[i]), is = config::to_toml(new_fields[i]);
    if (was == is || old_fields[i].key == "run.steps") continue;
    text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", old_fields[i].key, was, is);
  }
  return text;
}

void resolve_threads(config::Config& now, const config::Config* before, int cores, int cells) {
  bool same_world = before && before->parallel.ranks == now.parallel.ranks;
  int share = std::max(1, cores / cells);
  auto resolve = [&](int& threads, int earlier) {
    if (threads == 0) threads = same_world && earlier > 0 ? earlier : share;
  };
  resolve(now.compute.threads, before ? before->compute.threads : 0);
  resolve(now.optimizer.threads, before ? before->optimizer.threads : 0);
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

}  // namespace ganymede::launcher
