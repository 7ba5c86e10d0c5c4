#pragma once

#include "common/base/deadline.h"
#include "common/config/config.h"
#include "common/msg/client.h"
#include "common/placement/placement.h"
#include "common/shm/segment.h"
#include "common/step_protocol/control_block.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The runtime that all four services share: start, register, heartbeat, signals, segments, clean stop.
namespace ganymede::service {

enum class Kind { worker, optimizer, data, checkpoint };
const char* name(Kind kind);
/// "optimizer.1"; "optimizer.2.1" of state epoch 2: what a service's files and clients are called after.
std::string stem(Kind kind, int rank, std::uint64_t epoch = 0);

/// Typed view of the segment `control` of this cell. Thread-safe: all words are atomics.
struct Control {
  step_protocol::ControlBlock* block = nullptr;
  std::span<step_protocol::Word> gradients_ready;     // [buckets]
  std::span<step_protocol::Word> working_copy_ready;  // [buckets]
  std::span<std::int64_t> expert_counts;              // [MoE layers · experts]
  std::span<step_protocol::ServiceWords> services;    // [4], by Kind
};

/// The view of a mapped segment `control`. Valid as long as the segment is mapped.
Control control_of(shm::Segment& segment);

/// Typed view of the words of one state epoch of this cell, in its segment "state.<epoch>". Thread-safe like Control.
struct EpochControl {
  step_protocol::EpochWords* words = nullptr;
  step_protocol::Word* ready = nullptr;              // 1: a standby server has plugins and memory
  std::span<step_protocol::Word> matrices_sent;      // [buckets], by the optimizer server
  std::span<step_protocol::Word> matrices_returned;  // [buckets], by the worker
  std::span<double> reductions;                      // [Reductions::elements], by the worker before decided_step
};

/// The view of a mapped segment "state.<epoch>". Valid as long as the segment is mapped.
EpochControl epoch_control_of(shm::Segment& state);

/// How long an operation takes by its plan, of the clock and of processor time of the whole process.
struct PlannedTime {
  double seconds = 0;  // 0: not known
  double cpu_seconds = 0;
};

/// What a service's body gets. Lives as long as the service runs.
class Context {
 public:
  virtual ~Context() = default;
  /// Those of the first state epoch that the job had when the service began.
  virtual const config::Config& config() const = 0;
  virtual const placement::Placement& placement() const = 0;
  /// Those of any: which optimizer updates, and what depends on it, are its own. They stay where they are until the
  /// service ends. Throws Error when the job has no such epoch. Thread-safe.
  virtual const config::Config& config_of(std::uint64_t epoch);
  virtual const placement::Placement& placement_of(std::uint64_t epoch);
  /// What decision records say of the epoch's plugins, see service::plugin_hash. Throws Error when the job has no such
  /// epoch. Thread-safe.
  virtual std::uint64_t optimizer_hash_of(std::uint64_t epoch);
  virtual int rank() const = 0;
  /// The state epoch that an optimizer server was started for; nothing: the one in force.
  virtual std::optional<std::uint64_t> epoch() const { return std::nullopt; }
  virtual std::uint64_t job() const = 0;
  virtual Control& control() = 0;

  /// The mapped segment of this cell ("master", "state.0", …), checked against its layout and mapped on first use; it
  /// stays where it is until the service ends. Throws Error. Thread-safe.
  virtual shm::Segment& segment(const std::string& name) = 0;

  /// Unmaps the segments of an epoch that this service needs no more, so that their memory is free once the launcher
  /// gives them back. Nothing may point into them. Does nothing where the context made them itself. Thread-safe.
  virtual void release_epoch(std::uint64_t) {}

  /// A client of the launcher for the calling thread. The n-th one that a process asks for has the identity
  /// "<kind>.<rank>.<n>" ("<kind>.<epoch>.<rank>.<n>" after the first epoch), so a restarted service takes over its
  /// predecessor's.
  virtual std::unique_ptr<msg::Client> launcher_client() = 0;

  /// True once a signal or the launcher asked this service to end; waits look at it.
  virtual bool finishing() const = 0;

  /// Reports what the service does now; `progress` grows by one. `detail` is copied. Thread-safe.
  virtual void at(std::uint64_t operation, std::uint64_t bucket, const char* detail) = 0;

  /// The planned time of what `at` named last, while it waits for nobody outside this process: the launcher replaces a
  /// process that takes far longer (launch.stall_seconds). With each `at` nothing is known again. Thread-safe.
  virtual void plan(const PlannedTime&) {}

  /// Waits until `ready(value)` holds for the word, and returns true; false when the service must finish or
  /// `give_up()` (may be empty) says so, looked at every 20 ms. Throws Error at the deadline, naming `what`. While a
  /// thread waits here the heartbeats say `waiting`. Thread-safe.
  virtual bool wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
                    const std::function<bool()>& give_up, Deadline deadline, const char* what) = 0;
};

/// The same of the context's cell. Throws Error when the cell has no such epoch.
EpochControl epoch_control(Context& context, std::uint64_t epoch);

/// `main` of a service: parses `--run DIR --rank R` (and of an optimizer server `--epoch E`), changes into the run
/// directory, reads `config.toml` and `job.json`, takes the lock of (service, epoch, rank), attaches control,
/// registers, starts the heartbeat, runs `body`, and returns its exit code: 0 when `body` returned. An exception of the
/// body is reported to the launcher as fatal (unless the service is finishing) and logged; the process ends with the
/// Error's exit code, 1 for another exception. With `--protocol DIR` alone: see protocol.h. Called first thing in
/// `main`, before any thread: it blocks the signals that ask a program to end.
int run(Kind kind, int argc, char** argv, const std::function<void(Context&)>& body);

}  // namespace ganymede::service
