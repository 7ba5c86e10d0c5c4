#include "launcher/supervisor/service_binaries.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/os/files.h"
#include "common/service/protocol.h"
#include "common/service/run_directory.h"
#include "launcher/supervisor/service_id.h"

namespace ganymede::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* binaries_file = "programs.json";
constexpr const char* run_of_node_0 = "../";  // from the folder of another node, where they share a file system

service::Kind kind_of(const std::string& name) {
  auto kind = kind_named(name);
  if (!kind) fail("'{}' is not a service of a cell.", name);
  return *kind;
}

bool is_the_file(const std::string& path, std::uint64_t hash) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  try {
    return hash64(os::read_file(path)) == hash;
  } catch (const Error&) {
    return false;  // somebody else's
  }
}

/// Puts the binary's file where the run directory of this node has it.
void fetch(const coordinator::ServiceBinary& binary) {
  if (is_the_file(binary.file, binary.hash)) return;
  for (const std::string& place : {run_of_node_0 + binary.file, binary.path}) {
    if (!is_the_file(place, binary.hash)) continue;
    os::make_private_folder(service::program_folder);
    std::string beside = binary.file + ".new";
    std::error_code error;
    fs::copy_file(place, beside, fs::copy_options::overwrite_existing, error);
    if (!error) fs::permissions(beside, fs::perms::owner_all, error);
    if (!error) fs::rename(beside, binary.file, error);
    if (!error) return;
    fail("{} cannot be copied to {}: {}.", place, fs::absolute(binary.file).string(), error.message());
  }
  fail("There is no {} here, nor {} with this content (hash {:016x}): copy it to the same path on this node.",
       fs::absolute(binary.file).string(), binary.path, binary.hash);
}

nlohmann::ordered_json json_of(const ServiceBinaries::Program& program) {
  return {{"file", program.file}, {"path", program.path}};
}

ServiceBinaries::Program program_of(const nlohmann::json& object) {
  return {object.at("file").get<std::string>(), object.at("path").get<std::string>()};
}

}  // namespace

void require_same_protocol(service::Kind kind, const coordinator::ServiceBinary& binary) {
  if (binary.file.empty()) return;
  std::string own = service::protocol();
  if (binary.protocol == own) return;
  fail_usage(
      "{} speaks another protocol than this run ({}, not {}): it was built from sources whose messages, segments or "
      "plugin interface differ. Build ganymede-{} from the sources of the run, or stop the run and go on with all of "
      "the "
      "new programs.",
      binary.path, binary.protocol, own, service::name(kind));
}

std::string ServiceBinaries::Program::describe() const {
  return file.empty() ? "the installed program" : fmt::format("{} (of {})", file, path);
}

ServiceBinaries::ServiceBinaries() {
  if (!fs::exists(binaries_file)) return;
  try {
    auto object = nlohmann::json::parse(os::read_file(binaries_file));
    for (const auto& one : object.at("programs")) {
      State state{.now = program_of(one.at("now")),
                  .before = program_of(one.at("before")),
                  .trial = one.at("trial").get<bool>(),
                  .refusal = one.at("refusal").get<std::string>(),
                  .refused = one.at("refused").get<std::uint64_t>()};
      states_[{kind_of(one.at("service").get<std::string>()), one.at("rank").get<int>()}] = std::move(state);
    }
  } catch (const nlohmann::json::exception&) {
    fail("{}, which has the programs that services run in the place of the installed ones, is damaged: remove it.",
         fs::absolute(binaries_file).string());
  }
}

std::string ServiceBinaries::clear() {
  bool replaced = false;
  if (fs::exists(binaries_file)) {
    ServiceBinaries before;
    for (const auto& entry : before.states_) replaced = replaced || !entry.second.now.file.empty();
  }
  std::error_code error;
  fs::remove(binaries_file, error);
  if (!error) fs::remove_all(service::program_folder, error);
  if (error) fail("Programs of services of the run before cannot be removed: {}.", error.message());
  return replaced ? "all services run the installed programs again: what `ctl restart --binary` ordered ended with the "
                    "run before"
                  : "";
}

void ServiceBinaries::write() const {
  auto programs = nlohmann::ordered_json::array();
  for (const auto& [service, state] : states_)
    programs.push_back({{"service", service::name(service.first)},
                        {"rank", service.second},
                        {"now", json_of(state.now)},
                        {"before", json_of(state.before)},
                        {"trial", state.trial},
                        {"refusal", state.refusal},
                        {"refused", state.refused}});
  nlohmann::ordered_json object = {{"programs", programs}};
  constexpr int indentation = 2;
  os::write_file_atomically(
      binaries_file, object.dump(indentation, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

/// What cannot be written (a full disk) is known to this launcher, and lost with it.
void ServiceBinaries::note() const {
  try {
    write();
  } catch (const Error& error) {
    log::warn("{}", error.what());
  }
}

ServiceBinaries::State ServiceBinaries::of(service::Kind kind, int rank) const {
  auto known = states_.find({kind, rank});
  return known == states_.end() ? State{} : known->second;
}

void ServiceBinaries::order(service::Kind kind, int rank, const coordinator::ServiceBinary& binary) {
  require_same_protocol(kind, binary);
  if (!binary.file.empty()) fetch(binary);
  State state = of(kind, rank);
  if (!state.trial) state.before = state.now;
  state.now = {binary.file, binary.path};
  state.trial = state.before.file != binary.file;
  state.deaths = 0;
  state.refusal.clear();
  std::swap(states_[{kind, rank}], state);
  try {
    write();
  } catch (const Error&) {
    std::swap(states_[{kind, rank}], state);
    throw;
  }
}

void ServiceBinaries::refuse(service::Kind kind, int rank, std::uint64_t number, const std::string& why) {
  State& state = states_[{kind, rank}];
  state.refusal = why;
  state.refused = number;
  note();
}

void ServiceBinaries::prove(service::Kind kind, int rank) {
  auto known = states_.find({kind, rank});
  if (known == states_.end() || !known->second.trial) return;
  known->second.trial = false;
  note();
}

std::optional<std::string> ServiceBinaries::died(service::Kind kind, int rank, const std::string& cause) {
  State& state = states_[{kind, rank}];
  if (++state.deaths < most_deaths) return std::nullopt;
  std::string why =
      fmt::format("{} of rank {}: {} ended {} times before it had worked for a moment ({}); it runs {} again",
                  service::name(kind), rank, state.now.describe(), state.deaths, cause, state.before.describe());
  state = {.now = state.before, .before = state.before, .refusal = why};
  state.refused = coordinator::event_number();
  note();
  return why;
}

}  // namespace ganymede::launcher
