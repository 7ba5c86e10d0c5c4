#include "launcher/cli/doctor.h"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/os/machine.h"
#include "common/os/process.h"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t gib = 1u << 30;
constexpr std::uint64_t least_memory = 2 * gib;  // the quickstart recipe needs about this
constexpr std::uint64_t least_disk = 2 * gib;
constexpr std::uint64_t least_open_files = 1024;

std::string bytes(std::uint64_t count) { return human_bytes(static_cast<double>(count)); }

Finding programs() {
  std::string missing;
  for (const char* name : {"ganymede-keeper", "ganymede-launcher", "ganymede-worker", "ganymede-optimizer",
                           "ganymede-data", "ganymede-checkpoint"})
    if (access((os::program_folder() + "/" + name).c_str(), X_OK) != 0)
      missing += std::string(missing.empty() ? "" : ", ") + name;
  if (missing.empty()) return {"programs", true, "all programs are in " + os::program_folder()};
  return {"programs", false, fmt::format("missing in {}: {}; run ./bootstrap", os::program_folder(), missing)};
}

Finding plugins() {
  std::string folder = os::program_folder() + "/plugins", names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".so") names += (names.empty() ? "" : ", ") + entry.path().stem().string();
  if (!names.empty()) return {"plugins", true, "optimizers: " + names};
  return {"plugins", false, fmt::format("no optimizer plugin in {}; run ./bootstrap", folder)};
}

Finding memory(const os::Machine& machine) {
  if (machine.memory_total == 0) return {"memory", true, "not known here"};
  std::string text = fmt::format("{} free of {}", bytes(machine.memory_available), bytes(machine.memory_total));
  bool enough = machine.memory_available >= least_memory;
  return {"memory", enough,
          enough ? text : text + fmt::format("; a first run needs {}: end other programs", bytes(least_memory))};
}

Finding cores(const os::Machine& machine) {
  std::string text = fmt::format("{} ({})", machine.cores, machine.cpu_name);
  return {"cores", machine.cores >= 2, machine.cores >= 2 ? text : text + "; two or more are advised, one is slow"};
}

/// Other programs on the cores make steps slow, and what is measured meanwhile says little.
Finding load(const os::Machine& machine) {
  double minute = 0;
  if (getloadavg(&minute, 1) != 1) return {"load", true, "not known here"};
  return load_finding(minute, machine.cores);
}

Finding features(const os::Machine& machine) {
  std::string text = machine.avx512 ? "AVX-512" : machine.avx2 ? "AVX2" : "no wide vectors known";
  text += machine.avx512_bf16 ? ", fast bf16" : ", no fast bf16 (keep compute.dtype = \"fp32\")";
  return {"processor", true, text};
}

Finding limits(const os::Machine& machine) {
  std::string locked =
      machine.locked_memory_limit == ~std::uint64_t{0} ? "unlimited" : bytes(machine.locked_memory_limit);
  std::string text =
      fmt::format("{} open files, {} of locked memory (only GPUs need it)", machine.open_files_limit, locked);
  bool enough = machine.open_files_limit >= least_open_files;
  return {"limits", enough,
          enough ? text : text + fmt::format("; allow more open files: ulimit -n {}", least_open_files)};
}

Finding disk() {
  std::uint64_t free = os::free_disk_bytes(".");
  std::string text = fmt::format("{} free here", bytes(free));
  bool enough = free >= least_disk;
  return {"disk", enough,
          enough ? text : text + fmt::format("; datasets and checkpoints want {} or more", bytes(least_disk))};
}

std::string json(const std::vector<Finding>& findings) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& finding : findings)
    list.push_back({{"check", finding.check}, {"ok", finding.good}, {"text", finding.text}});
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void doctor(bool as_json) {
  auto findings = examine();
  int bad = 0;
  for (const auto& finding : findings) {
    if (!finding.good) ++bad;
    if (!as_json) fmt::print("{}  {:<10}  {}\n", finding.good ? "ok" : "--", finding.check, finding.text);
  }
  if (as_json) fmt::print("{}\n", json(findings));
  std::fflush(stdout);
  if (bad > 0) fail("{} of {} checks ask for something to be done.", bad, findings.size());
}

}  // namespace

Finding load_finding(double load, int cores) {
  std::string text = fmt::format("{:.1f} on {} {} in the last minute", load, cores, cores == 1 ? "core" : "cores");
  if (load >= 0.5 * cores)
    text += ": busy, so steps are slow and timings mean little until other work ends (`top` shows it)";
  return {"load", true, text};
}

std::vector<Finding> examine() {
  os::Machine machine = os::inspect_machine();
  return {programs(),        plugins(),       memory(machine), cores(machine),     load(machine),
          features(machine), limits(machine), disk(),          examine_leftovers()};
}

void add_doctor(CLI::App& app) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Check this machine; one line each: ok, or what to do");
  command->add_flag("--json", *as_json, "Print JSON");
  command->callback([as_json] { doctor(*as_json); });
}

}  // namespace ganymede::cli
