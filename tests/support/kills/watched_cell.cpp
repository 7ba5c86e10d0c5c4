#include "tests/support/kills/watched_cell.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/cell/layouts.h"
#include "common/service/run_directory.h"
#include "common/shm/keeper_client.h"
#include "common/step_protocol/snapshot_machine.h"
#include "tests/support/process_wait.h"

namespace ganymede::test {
namespace {

namespace fs = std::filesystem;

/// Paths of a run directory are relative to it, and short.
class Inside {
 public:
  explicit Inside(const std::string& run) : before_(fs::current_path()) { fs::current_path(run); }
  ~Inside() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  fs::path before_;
};

shm::Segment attach(const std::string& run, int rank, const std::string& name) {
  Inside inside(run);
  shm::KeeperClient keeper(service::keeper_socket);
  os::Fd fd = keeper.get(shm::held_name(rank, name), Deadline::after_seconds(10));
  return shm::Segment::attach(fd.get(), shm::Segment::describe(fd.get()), service::read_job().id);
}

/// Once the launcher has written them and made the segments.
void await_segments(const std::string& run, int rank) {
  wait_until(
      [&] {
        try {
          return attach(run, rank, "control").span<step_protocol::ControlBlock>("block")[0].state_ready.load() == 1;
        } catch (const std::exception&) {
          return false;
        }
      },
      60, fmt::format("the state of rank {}", rank));
}

const std::string& ready(const std::string& run, int rank) {
  await_segments(run, rank);
  return run;
}

placement::Placement placement_of(const std::string& run, const config::Config& config, int rank) {
  Inside inside(run);
  return placement::build(config, rank, service::read_job().optimizers());
}

}  // namespace

WatchedCell::WatchedCell(const std::string& run, int rank)
    : config_(config::load(ready(run, rank) + "/" + service::config_file, {})),
      placement_(placement_of(run, config_, rank)),
      control_segment_(attach(run, rank, "control")),
      state_segment_(attach(run, rank, shm::state_name(0))),
      side_segment_(attach(run, rank, shm::side_name(0))),
      control_(service::control_of(control_segment_)),
      state_(service::epoch_control_of(state_segment_)),
      read_marks_(side_segment_.span<step_protocol::Word>("read_marks")) {}

bool WatchedCell::meets() const {
  return control_.block->joined_generation.load() > control_.block->formed_generation.load();
}

const placement::Chunk* WatchedCell::updated_chunk() const {
  std::uint64_t done = chunks_done(), chunks = placement_.chunks.size();
  return done / chunks < decided_step() ? &placement_.chunks[done % chunks] : nullptr;
}

bool WatchedCell::snapshot_armed() const { return step_protocol::is_armed(control_.block->snapshot.load()); }

double WatchedCell::snapshot_read() const {
  std::uint64_t step = step_protocol::snapshot_step(control_.block->snapshot.load());
  double read = 0;
  for (const auto& mark : read_marks_) read += mark.load() == step ? 1 : 0;
  return read / static_cast<double>(read_marks_.size());
}

}  // namespace ganymede::test
