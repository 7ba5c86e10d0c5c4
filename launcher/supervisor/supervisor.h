#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "launcher/coordinator/checkpoint_parts.h"
#include "launcher/coordinator/key_value_store.h"
#include "launcher/coordinator/membership.h"
#include "launcher/supervisor/cells.h"
#include "launcher/supervisor/crew.h"
#include "launcher/supervisor/signals.h"
#include "launcher/supervisor/step_log.h"

namespace ganymede::launcher {

/// How a run ended.
struct Outcome {
  ExitCode code = ExitCode::done;
  std::string text;  // of a failure: a sentence, then the culprit's last log lines; else empty
  std::optional<std::uint64_t> checkpoint = {};  // step of the newest one
};

/// What the supervisor is given; all of it outlives the supervisor.
struct SupervisorParts {
  boost::asio::io_context& io;
  const config::Config& config;
  const service::Job& job;
  Cells& cells;
  StepLog& steps;
  Terminal& terminal;
  Signals& signals;
  std::string programs, run;                     // folders
  double segment_bytes = 0;                      // of all cells of this node
  double predicted_bytes = 0, memory_limit = 0;  // of the host budget
};

/// Runs the services of a job from start to end: starts them, watches them, starts dead ones again, leads them through
/// the stop, and counts the world's generations. Everything happens in the io_context's thread.
class Supervisor {
 public:
  explicit Supervisor(SupervisorParts parts);

  /// Starts the services and returns when every one of them has ended.
  Outcome run();

  // What services report.
  void registered(const ServiceId& id, int pid);
  void heartbeat(const ServiceId& id, const fbs::Heartbeat& beat);
  void fatal(const ServiceId& id, int exit_code, const std::string& text);
  void step(const fbs::StepReport& report);
  coordinator::CheckpointParts::Receipt part(const fbs::PartDurable& part);
  void committed(std::uint64_t step, std::uint64_t bytes, double seconds);
  void checkpoint_failed(std::uint64_t step, int rank, const std::string& text);

  // What a person asks for.
  /// After the current step, with a checkpoint.
  void stop();
  /// At once. Asked for by a message, a moment later, so that the sender gets its answer.
  void stop_now();
  void stop_now_after_answer();
  void checkpoint();
  void restart(const ServiceId& id);

  // What others look at.
  /// Whether this service is to end now that its work is done.
  bool wants_end_of(const ServiceId& id);
  /// "training", "recovering" or "stopping".
  const char* state();
  coordinator::KeyValueStore& store() { return store_; }
  const coordinator::Membership& membership() const { return membership_; }
  Crew& crew() { return crew_; }
  const SupervisorParts& parts() const { return parts_; }
  std::optional<std::uint64_t> last_checkpoint() const { return last_committed_; }

 private:
  enum class Phase { working, finishing, halting };

  void ended(ServiceProcess& process, const os::Ending& ending);
  void replace(ServiceProcess& process, const os::Ending& ending);
  void announce(std::optional<std::uint64_t> generation);
  void consider_first_generation();
  void on_signal(int number);
  void tick();
  void watch_vitals(double now);
  void watch_draining(double now);
  StepSurroundings around() const;
  void write_steps(const std::function<void()>& write);
  void worker_left(ServiceProcess& process);
  void consider_finish();
  void finish();
  void halt(Outcome outcome, bool hard);
  void press_on(double now);
  void consider_over();

  SupervisorParts parts_;
  Crew crew_;
  coordinator::Membership membership_;
  coordinator::KeyValueStore store_;
  coordinator::CheckpointParts checkpoint_parts_;
  boost::asio::steady_timer timer_, farewell_;
  Phase phase_ = Phase::working;
  Outcome outcome_;
  bool stopping_ = false;
  int interrupts_ = 0;
  int kills_sent_ = 0;         // how often press_on has raised the pressure
  double phase_began_ = 0;     // seconds; of finishing or halting
  double first_left_ = 0;      // seconds; a worker has left, its work done; 0: none yet
  double draining_since_ = 0;  // seconds; all workers have left; 0: not yet
  double ticked_ = 0;          // seconds
  std::optional<std::uint64_t> last_committed_;
};

}  // namespace ganymede::launcher
