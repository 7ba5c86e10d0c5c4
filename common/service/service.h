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
#include <span>
#include <string>
#include <vector>

/// The runtime that all four services share: start, register, heartbeat, signals, segments, clean stop.
namespace ganymede::service {

enum class Kind { worker, optimizer, data, checkpoint };
const char* name(Kind kind);

/// Typed view of the segment `control` of this cell. Thread-safe: all words are atomics.
struct Control {
  step_protocol::ControlBlock* block = nullptr;
  std::span<step_protocol::Word> gradients_ready;     // [buckets]
  std::span<step_protocol::Word> working_copy_ready;  // [buckets]
  std::span<std::int64_t> expert_counts;              // [MoE layers · experts]
  std::span<step_protocol::ServiceWords> services;    // [4], by Kind
};

/// What a service's body gets. Lives as long as the service runs.
class Context {
 public:
  virtual ~Context() = default;
  virtual const config::Config& config() const = 0;
  virtual const placement::Placement& placement() const = 0;
  virtual int rank() const = 0;
  virtual std::uint64_t job() const = 0;
  virtual Control& control() = 0;
  /// State slots of the configured optimizer, in plugin order.
  virtual const std::vector<std::string>& slots() const = 0;

  /// The mapped segment of this cell ("master", "state.0", …), checked against its layout. Throws Error.
  virtual shm::Segment& segment(const std::string& name) = 0;

  /// A client of the launcher for the calling thread.
  virtual std::unique_ptr<msg::Client> launcher_client() = 0;

  /// True once a signal or the launcher asked this service to end; waits look at it.
  virtual bool finishing() const = 0;

  /// Reports what the service does now; `progress` grows by one.
  virtual void at(std::uint64_t operation, std::uint64_t bucket, const char* detail) = 0;

  /// Waits until `ready(value)` holds for the word, and returns true; false when the service must finish or
  /// `give_up()` says so (looked at every 20 ms). Throws Error at the deadline, naming `what`.
  virtual bool wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
                    const std::function<bool()>& give_up, Deadline deadline, const char* what) = 0;
};

/// `main` of a service: parses `--run DIR --rank R`, changes into the run directory, reads `config.toml` and
/// `job.json`, takes the lock of (service, rank), attaches control, registers, starts the heartbeat, runs `body`,
/// and returns its exit code. An Error of the body is reported to the launcher as fatal (unless it is finishing) and
/// logged; the process ends with the error's exit code.
int run(Kind kind, int argc, char** argv, const std::function<void(Context&)>& body);

}  // namespace ganymede::service
