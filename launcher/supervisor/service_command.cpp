#include "launcher/supervisor/service_command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "common/base/error.h"
#include "common/service/run_directory.h"

namespace ganymede::launcher {
namespace {

bool is_program(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (is_program((folder.empty() ? "." : folder) + "/" + program)) return true;
  return false;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> torch_environment() {
  return {
      // The wheel's allocator leaks with transparent huge pages.
      {"MIMALLOC_ALLOW_THP", "0"},
      // Threads wait for one another some 50 µs awake, then asleep: longer than between two operations, and far shorter
      // than the system leaves a thread aside on a busy machine, where awake ones would only hold its core.
      {"GOMP_SPINCOUNT", "2000"},
  };
}

std::vector<std::pair<std::string, std::string>> worker_environment(const config::Config& config,
                                                                    const os::Machine& machine) {
  std::string threads = std::to_string(config.compute.threads);
  auto environment = torch_environment();
  environment.emplace_back("OMP_NUM_THREADS", threads);
  environment.emplace_back("MKL_NUM_THREADS", threads);
  // One code path of MKL, whatever the alignment of its operands: the bits of a product do not change between runs.
  if (machine.avx512 || machine.avx2)
    environment.emplace_back("MKL_CBWR", machine.avx512 ? "AVX512,STRICT" : "AVX2,STRICT");
  return environment;
}

void check_wrapper(const std::string& wrap_worker) {
  std::istringstream words(wrap_worker);
  std::string program;
  if (!(words >> program)) return;
  bool named_by_path = program.find('/') != std::string::npos;
  if (named_by_path ? is_program(program) : is_in_path(program)) return;
  fail_usage("Key 'launch.wrap_worker' is \"{}\", but there is no program {}{}.", wrap_worker, program,
             named_by_path ? "" : " in PATH");
}

os::Command service_command(const ServiceId& id, const config::Config& config, const os::Machine& machine,
                            const std::string& programs, const std::string& run, const std::string& binary) {
  os::Command command;
  if (id.kind == service::Kind::worker) {
    std::istringstream words(config.launch.wrap_worker);
    for (std::string word; words >> word;) command.arguments.push_back(word);
  }
  if (!command.arguments.empty()) {
    if (command.arguments[0].find('/') == std::string::npos)  // looked up in PATH
      command.arguments.insert(command.arguments.begin(), "/usr/bin/env");
    command.own_process_group = false;
  } else {
    command.output_file = fmt::format("{}/{}.out", service::log_folder, id.stem());
  }
  command.arguments.push_back(binary.empty() ? fmt::format("{}/ganymede-{}", programs, service::name(id.kind))
                                             : fmt::format("{}/{}", run, binary));
  for (const std::string& argument : {std::string("--run"), run, std::string("--rank"), std::to_string(id.rank)})
    command.arguments.push_back(argument);
  if (id.kind == service::Kind::worker) command.environment = worker_environment(config, machine);
  if (id.kind != service::Kind::optimizer) return command;
  // Always: one that is started after another epoch came into force has to see that it is superseded (rule 2).
  command.arguments.insert(command.arguments.end(), {"--epoch", std::to_string(id.epoch)});
  // Else OpenBLAS starts a thread a core when it is loaded; tasks come from the optimizer server's own threads.
  command.environment.emplace_back("OPENBLAS_NUM_THREADS", "1");
  return command;
}

}  // namespace ganymede::launcher
