#include "common/service/protocol.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/run_command.h"
#include "common/cell/layouts.h"
#include "common/service/run_directory.h"

namespace ganymede::service {
namespace {

constexpr int own_digits = 16;

/// Of every segment of the first rank's cell, in all state epochs.
std::uint64_t layouts_hash() {
  Job job = read_job();
  std::vector<JobEpoch> epochs = job.epochs;
  if (epochs.empty()) epochs.push_back(job.first_epoch());
  std::string text;
  for (const JobEpoch& epoch : epochs) {
    config::Config config = config::load(epoch.config, {});
    auto placement = placement::build(config, 0, epoch.optimizers());
    for (const shm::Layout& layout : shm::cell_layouts(config, placement, epoch.number))
      text += fmt::format("{} {:016x}\n", layout.name, layout.hash());
  }
  return hash64(text);
}

}  // namespace

std::string protocol() {
  return fmt::format("{}/{:016x}", std::string(GANYMEDE_SHARED_SOURCES).substr(0, own_digits), layouts_hash());
}

std::string protocol_line(Kind kind, const std::string& protocol) {
  return fmt::format("ganymede-{} {}", name(kind), protocol);
}

int tell_protocol(Kind kind, const std::string& run) {
  return run_command(fmt::format("ganymede-{}: ", name(kind)), [&] {
    if (::chdir(run.c_str()) != 0) fail("Run directory {} cannot be entered: {}.", run, std::strerror(errno));
    fmt::print("{}\n", protocol_line(kind, protocol()));
    return static_cast<int>(ExitCode::done);
  });
}

}  // namespace ganymede::service
