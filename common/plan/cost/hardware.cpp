#include "common/plan/cost/hardware.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/config/assign.h"
#include "common/config/fields.h"
#include "common/config/toml_reader.h"
#include "common/os/files.h"

namespace ganymede::plan {
namespace {

using config::Field;
using config::Range;

constexpr Range rate = {1e-3, 1e9, false}, room = {0, 1e9, true}, share = {1e-3, 1, false}, delay = {0, 1e9, false},
                count = {0, 4096, false}, any = {};

std::vector<Field> link_fields(const std::string& section, Hardware::Link& link) {
  return {{section + ".gb_per_second", &link.gb_per_second, rate, "of one rank, a direction"},
          {section + ".latency_us", &link.latency_us, delay, "of one message"},
          {section + ".shared", &link.shared, any, "the ranks of a node share it"}};
}

std::vector<Field> fields(Hardware& h) {
  std::vector<Field> all = {
      {"name", &h.name, any, "shown above a plan"},
      {"compute.fp32_gflops", &h.compute.fp32_gflops, rate, "peak of matrix products of one device"},
      {"compute.bf16_gflops", &h.compute.bf16_gflops, rate, "the same in bf16"},
      {"compute.product_efficiency", &h.compute.product_efficiency, share, "share of it that large products reach"},
      {"compute.expert_efficiency", &h.compute.expert_efficiency, share, "share that products of experts reach"},
      {"compute.attention_efficiency", &h.compute.attention_efficiency, share, "share that attention reaches"},
      {"compute.shared", &h.compute.shared, any, "the ranks of a node share one device"},
      {"compute.operation_us", &h.compute.operation_us, delay, "fixed cost of an operation of the plan"},
      {"compute.multiprocessors", &h.compute.multiprocessors, count, "of one device; 0: collectives take none of it"},
      {"collectives.ctas", &h.collectives.ctas, count, "that a communicator takes which nothing caps"},
      {"collectives.cta_gb_per_second", &h.collectives.cta_gb_per_second, room,
       "that each moves; 0: the link bounds it"},
      {"memory.device_gb_per_second", &h.memory.device_gb_per_second, rate, "where the worker computes"},
      {"memory.host_gb_per_second", &h.memory.host_gb_per_second, rate, "where master, gradients and state lie"},
      {"memory.shared", &h.memory.shared, any, "the ranks of a node share both"},
      {"memory.device_gib", &h.memory.device_gib, room, "what a device has"},
      {"memory.host_gib_per_node", &h.memory.host_gib_per_node, room, "what a node has beside its devices"},
      {"host_link.gb_per_second",
       &h.host_link.gb_per_second,
       {0, rate.most, false},
       "0: host and device memory are one"},
      {"host_link.latency_us", &h.host_link.latency_us, delay, "of one copy"},
  };
  for (const Field& field : link_fields("node", h.node)) all.push_back(field);
  for (const Field& field : link_fields("network", h.network)) all.push_back(field);
  return all;
}

std::string read_hardware(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) fail_usage("Hardware file {} does not exist.", file);
  if (!std::filesystem::is_regular_file(file, error)) fail_usage("Hardware file {} is not a file.", file);
  try {
    return os::read_file(file);
  } catch (const Error& e) {
    fail_usage("Hardware file {}", e.what());
  }
}

/// The known key that was probably meant: its name inside its section first, then the whole.
std::string meant(const std::string& key, const std::vector<Field>& all) {
  std::vector<std::string> keys, sections, here;
  for (const Field& field : all) {
    keys.push_back(field.key);
    sections.push_back(config::section_of(field.key));
  }
  std::string section = nearest(config::section_of(key), sections);
  for (const std::string& known : keys) {
    if (config::section_of(known) == section) here.push_back(config::name_of(known));
  }
  std::string name = nearest(config::name_of(key), here);
  if (!name.empty()) return section.empty() ? name : section + "." + name;
  return nearest(key, keys);
}

[[noreturn]] void unknown(const std::string& where, const std::string& key, const std::vector<Field>& all) {
  std::string near = meant(key, all);
  if (near.empty())
    fail_usage("{}: key '{}' is not known in a hardware file; configs/hardware/gh200.toml shows all of them.", where,
               key);
  fail_usage("{}: key '{}' is not known; did you mean '{}'?", where, key, near);
}

/// Without these a plan would show made-up times. What a machine may do without has a standard value: latencies,
/// `shared`, the name, and what collectives take of computation; and without capacities nothing is said about what
/// fits.
bool needed(const std::string& key) {
  return key.ends_with("gflops") || key.ends_with("efficiency") ||
         (key.ends_with("gb_per_second") && config::section_of(key) != "collectives");
}

void check_complete(const std::string& file, const std::vector<Field>& all, const std::set<std::string>& given) {
  std::vector<std::string> missing;
  for (const Field& field : all) {
    if (needed(field.key) && !given.contains(field.key)) missing.push_back(field.key);
  }
  if (missing.empty()) return;
  fail_usage("{} lacks {} {}: configs/hardware/ has complete files, docs/plan.md explains the keys.", file,
             missing.size() == 1 ? "the key" : "the keys", fmt::join(missing, ", "));
}

/// Shown in lines of a plan.
void check_name(const std::string& name, const std::string& where) {
  bool printable =
      std::none_of(name.begin(), name.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; });
  if (printable && !name.empty()) return;
  fail_usage("{}: key 'name' is {}; it has to be a text that is not empty and has no control characters.", where,
             config::toml_text(name));
}

void check_host_link(double gb_per_second, const std::string& where) {
  if (gb_per_second == 0 || rate.holds(gb_per_second)) return;
  fail_usage("{}: key 'host_link.gb_per_second' is {}, but has to be {}, or 0 where host and device memory are one.",
             where, gb_per_second, rate.describe());
}

}  // namespace

Hardware load_hardware(const std::string& file) {
  Hardware hardware;
  hardware.name = std::filesystem::path(file).stem().string();
  std::vector<Field> all = fields(hardware);
  std::set<std::string> given;
  for (const auto& leaf : config::read_toml(read_hardware(file), file)) {
    std::string where = fmt::format("{}:{}", file, leaf.line);
    auto found = std::find_if(all.begin(), all.end(), [&](const Field& f) { return f.key == leaf.key; });
    if (found == all.end()) unknown(where, leaf.key, all);
    config::assign(*found, leaf.value, where);
    if (leaf.key == "name") check_name(hardware.name, where);
    if (leaf.key == "host_link.gb_per_second") check_host_link(hardware.host_link.gb_per_second, where);
    given.insert(leaf.key);
  }
  check_complete(file, all, given);
  return hardware;
}

}  // namespace ganymede::plan
