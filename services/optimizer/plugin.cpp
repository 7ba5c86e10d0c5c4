#include "services/optimizer/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/os/files.h"
#include "common/placement/reductions.h"
#include "services/optimizer/plugin_guard.h"

namespace ganymede::optimizer {
namespace {

constexpr const char* entry_name = "ganymede_optimizer_v1";

bool is_name(const char* text) {
  if (text == nullptr) return false;
  std::string_view name(text);
  auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), allowed);
}

void check_slots(const GanymedeOptimizer& table, const std::string& path) {
  if (table.slot_count > most_slots || (table.slot_count > 0 && table.slots == nullptr)) {
    fail("optimizer plugin {} has an invalid slot table: {} slots, at most {} are allowed", path, table.slot_count,
         most_slots);
  }
  std::set<std::string> seen = {"redo"};  // the server's own entry beside the slots
  for (std::uint32_t i = 0; i < table.slot_count; i++) {
    const GanymedeStateSlot& slot = table.slots[i];
    if (!is_name(slot.name) || !is_name(slot.meaning)) {
      fail("optimizer plugin {} has an invalid slot table: name and meaning of slot {} must be lower-case words", path,
           i);
    }
    if (!seen.insert(slot.name).second) {
      fail("optimizer plugin {} has an invalid slot table: the name '{}' is taken twice or reserved", path, slot.name);
    }
    if (slot.shape > GANYMEDE_PER_ROW || slot.reserved != 0) {
      fail("optimizer plugin {} has an invalid slot table: the shape of '{}' is {}, and there are {} and {}", path,
           slot.name, slot.shape, static_cast<int>(GANYMEDE_PER_ELEMENT), static_cast<int>(GANYMEDE_PER_ROW));
    }
    if (slot.shape == GANYMEDE_PER_ROW && table.update_matrix == nullptr) {
      fail("optimizer plugin {} has the per-row slot '{}', but no update_matrix that would write it", path, slot.name);
    }
  }
}

bool is_whole(double value) { return value == std::floor(value); }

bool is_sound(const GanymedeHyperParameter& key) {
  constexpr std::uint32_t known = GANYMEDE_WHOLE_NUMBER | GANYMEDE_FIXED;
  bool in_range = key.lowest <= key.default_value && key.default_value <= key.highest;
  bool whole = (key.flags & GANYMEDE_WHOLE_NUMBER) == 0 ||
               (is_whole(key.lowest) && is_whole(key.default_value) && is_whole(key.highest));
  return is_name(key.name) && key.help != nullptr && in_range && (key.flags & ~known) == 0 && whole;
}

/// The arrays of a plugin that was built against another header would be read at the wrong places.
void check_sizes(const GanymedeOptimizer& table, const std::string& path) {
  auto check = [&](const char* what, std::uint32_t stated, std::size_t own) {
    if (stated != own)
      fail("optimizer plugin {} states {} of {} bytes, ABI {} has {}: build the plugin against this version's header",
           path, what, stated, GANYMEDE_OPTIMIZER_ABI, own);
  };
  check("state slots", table.slot_size, sizeof(GanymedeStateSlot));
  check("hyper-parameters", table.hyper_parameter_size, sizeof(GanymedeHyperParameter));
}

void check_hyper_table(const GanymedeOptimizer& table, const std::string& path) {
  std::uint32_t count = table.hyper_parameter_count;
  std::set<std::string> seen;
  bool valid = count <= most_hyper_parameters && (count == 0 || table.hyper_parameters != nullptr);
  for (std::uint32_t i = 0; valid && i < count; i++) {
    const GanymedeHyperParameter& key = table.hyper_parameters[i];
    valid = is_sound(key) && seen.insert(key.name).second;
  }
  if (!valid) fail("optimizer plugin {} has an invalid table of hyper-parameters", path);
}

void check_reductions(const GanymedeOptimizer& table, const std::string& path) {
  std::uint32_t count = table.reduction_count;
  if (count > placement::reduction_kinds || (count > 0 && table.reductions == nullptr))
    fail("optimizer plugin {} has an invalid list of reductions: {} names, at most {} are allowed", path, count,
         placement::reduction_kinds);
  std::set<std::string> seen;
  for (std::uint32_t i = 0; i < count; i++) {
    std::string name = table.reductions[i] == nullptr ? "" : table.reductions[i];
    if (placement::reduction_index(name) < 0)
      fail("optimizer plugin {} asks for the reduction '{}', which is not known; there are {}", path, name,
           fmt::join(placement::reduction_names, ", "));
    if (!seen.insert(name).second) fail("optimizer plugin {} asks for the reduction '{}' twice", path, name);
  }
}

[[noreturn]] void refuse_key(const std::string& key, const std::map<std::string, const GanymedeHyperParameter*>& keys) {
  std::vector<std::string> known;
  for (const auto& one : keys) known.push_back("optimizer." + one.first);
  if (known.empty()) fail_usage("Key 'optimizer.{}' is not known: that optimizer has no keys of its own.", key);
  fail_usage("Key 'optimizer.{}' is not known; there are {}.", key, fmt::join(known, ", "));
}

/// The end of a file that was cut off is mapped all the same, and touching it ends the process by a signal. What is no
/// library at all is left to dlopen.
void check_whole(std::string_view content, const std::string& path) {
  Elf64_Ehdr head{};
  if (content.size() < sizeof head) return;
  std::memcpy(&head, content.data(), sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return;
  for (std::size_t i = 0; i < head.e_phnum; i++) {
    Elf64_Phdr part{};
    bool listed = head.e_phoff <= content.size() && (i + 1) * sizeof part <= content.size() - head.e_phoff;
    if (listed) std::memcpy(&part, content.data() + head.e_phoff + i * sizeof part, sizeof part);
    if (part.p_type != PT_LOAD && listed) continue;
    bool whole = listed && part.p_offset <= content.size() && part.p_filesz <= content.size() - part.p_offset;
    if (!whole) fail("optimizer plugin {} is damaged: its end is missing; build it again", path);
  }
}

}  // namespace

placement::OptimizerFacts Plugin::facts(const std::string& name) const {
  placement::OptimizerFacts facts{name, {}, table->apply_chunk != nullptr};
  facts.updates_matrix = table->update_matrix != nullptr;
  for (const GanymedeStateSlot& slot : std::span(table->slots, table->slot_count)) {
    facts.slots.emplace_back(slot.name);
    if (slot.shape == GANYMEDE_PER_ROW) facts.row_slots.emplace_back(slot.name);
  }
  facts.reductions.assign(table->reductions, table->reductions + table->reduction_count);
  return facts;
}

Plugin load_plugin(const std::string& path) {
  std::string content = os::read_file(path);
  check_whole(content, path);
  InPlugin in_plugin(path);
  // A path without a slash would be looked for in the system's library folders.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    fail("optimizer plugin {} is not a library that can be loaded: {}", path, reason ? reason : "no reason given");
  }
  auto entry = reinterpret_cast<GanymedeOptimizerEntry>(dlsym(library, entry_name));
  if (entry == nullptr) fail("optimizer plugin {} has no symbol {}: it is not an optimizer plugin", path, entry_name);
  Plugin plugin;
  plugin.table = entry();
  plugin.hash = hash64(std::string_view(content));
  check_table(plugin.table, path);
  return plugin;
}

void check_table(const GanymedeOptimizer* table, const std::string& path) {
  if (table == nullptr) fail("optimizer plugin {} gave no table: its entry {} returned nothing", path, entry_name);
  if (table->abi != GANYMEDE_OPTIMIZER_ABI) {
    fail("optimizer plugin {} speaks ABI {}, this program speaks {}: build the plugin against this version's header",
         path, table->abi, GANYMEDE_OPTIMIZER_ABI);
  }
  if (table->size != sizeof(GanymedeOptimizer)) {
    fail(
        "optimizer plugin {} states a table of {} bytes, ABI {} has {}: build the plugin against this version's header",
        path, table->size, GANYMEDE_OPTIMIZER_ABI, sizeof(GanymedeOptimizer));
  }
  if (!is_name(table->name) || table->version == nullptr) {
    fail("optimizer plugin {} has no valid name or version", path);
  }
  if (table->update_chunk == nullptr) fail("optimizer plugin {} has no update_chunk", path);
  if (table->update_matrix != nullptr && table->apply_chunk == nullptr)
    fail("optimizer plugin {} has update_matrix, but no apply_chunk: only an optimizer of matrices has both", path);
  check_sizes(*table, path);
  check_slots(*table, path);
  check_hyper_table(*table, path);
  check_reductions(*table, path);
}

std::map<std::string, double> hyper_parameters(const GanymedeOptimizer& table, const std::string& name,
                                               const config::Optimizer& settings) {
  std::string section = name + ".";
  std::map<std::string, const GanymedeHyperParameter*> keys;
  std::map<std::string, double> values;
  for (const auto& key : std::span(table.hyper_parameters, table.hyper_parameter_count)) {
    keys[section + key.name] = &key;
    values[section + key.name] = key.default_value;
  }
  for (const auto& [key, value] : settings.hyper) {
    if (!key.starts_with(section)) continue;
    auto found = keys.find(key);
    if (found == keys.end()) refuse_key(key, keys);
    double lowest = found->second->lowest, highest = found->second->highest;
    bool whole = (found->second->flags & GANYMEDE_WHOLE_NUMBER) != 0;
    if (!(value >= lowest && value <= highest) || (whole && !is_whole(value))) {
      fail_usage("Key 'optimizer.{}' is {}, but has to be {}{} to {}.", key, value, whole ? "a whole number, " : "",
                 lowest, highest);
    }
    values[key] = value;
  }
  return values;
}

void refuse_fixed(const GanymedeOptimizer& table, const std::string& name, const std::vector<std::string>& keys) {
  for (const auto& one : std::span(table.hyper_parameters, table.hyper_parameter_count)) {
    std::string key = fmt::format("optimizer.{}.{}", name, one.name);
    if ((one.flags & GANYMEDE_FIXED) == 0 || std::find(keys.begin(), keys.end(), key) == keys.end()) continue;
    fail_usage("Key '{}' is fixed for the life of a run: stop it, and begin another with the new value.", key);
  }
}

}  // namespace ganymede::optimizer
