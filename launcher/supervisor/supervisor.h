#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/coordinator/checkpoint_parts.h"
#include "launcher/coordinator/key_value_store.h"
#include "launcher/coordinator/membership.h"
#include "launcher/coordinator/node_table.h"
#include "launcher/coordinator/restart_book.h"
#include "launcher/keeper/sign_of_life.h"
#include "launcher/supervisor/cells.h"
#include "launcher/supervisor/changes.h"
#include "launcher/supervisor/crew.h"
#include "launcher/supervisor/crew_end.h"
#include "launcher/supervisor/degraded.h"
#include "launcher/supervisor/epochs.h"
#include "launcher/supervisor/optimizer_swap.h"
#include "launcher/supervisor/outcome.h"
#include "launcher/supervisor/reforming.h"
#include "launcher/supervisor/signals.h"
#include "launcher/supervisor/step_log.h"
#include "launcher/supervisor/time_limit.h"

namespace ganymede::launcher {

/// What the supervisor is given; all of it outlives the supervisor.
struct SupervisorParts {
  boost::asio::io_context& io;
  const config::Config& config;
  const service::Job& job;
  Cells& cells;
  StepLog& steps;
  Terminal& terminal;
  Signals& signals;
  const keeper::SignOfLife& life;
  std::string programs, run;                    // folders
  std::vector<coordinator::NodeAddress> nodes;  // of a run over several nodes; else empty
  double segment_bytes = 0;                     // of all cells of this node, when the run began
  HostBudget budget = {};                       // of this node
  config::Config recipe = {};                   // with the settings of this launch, without changes
  std::set<std::string> said = {};              // keys that a person has set with it
  Reforming& reforming;
  coordinator::NextWorld world = {};                           // this one
  std::optional<coordinator::RestartEvent> formed_again = {};  // why, when it is not the launcher's first
  double formed_again_since = 0;                               // seconds
};

/// The launcher of node 0, which is the coordinator: runs the services of its cells from start to end, leads the whole
/// world through start, generations and stop, and knows of the other nodes by their reports. Everything happens in the
/// io_context's thread.
class Supervisor {
 public:
  explicit Supervisor(SupervisorParts parts);

  /// Starts the services and returns when every one of them has ended.
  Outcome run();

  // What services report.
  void registered(const ServiceId& id, int pid);
  void heartbeat(const ServiceId& id, const fbs::Heartbeat& beat);
  /// `pid` tells a standby of a swap.
  void fatal(const ServiceId& id, int pid, int exit_code, const std::string& text);
  void step(const fbs::StepReport& report);
  coordinator::CheckpointParts::Receipt part(const fbs::PartDurable& part);
  void committed(std::uint64_t step, std::uint64_t bytes, double seconds);
  void checkpoint_failed(std::uint64_t step, int rank, const std::string& text);

  /// See Membership::failed; one that is not current any more is not listened to.
  void generation_failed(std::uint64_t generation, int rank, const std::string& cause);

  // What the launchers of other nodes say. Both throw Error for what cannot be.
  /// False when it has to wait for a place.
  bool hello(const coordinator::NodeTable::Hello& hello);
  coordinator::NodeWishes report(coordinator::NodeState state);
  /// A launcher that wanted to take part was told why it cannot; so is whoever looks at this one.
  void refused(const std::string& why);

  // What a person asks for.
  /// After the current step, with a checkpoint; at once while the states are loaded or nodes are waited for.
  void stop();
  /// At once. Asked for by a message, a moment later, so that the sender gets its answer.
  void stop_now();
  void stop_now_after_answer();
  void checkpoint();
  /// The world forms again as wished, after the step in work; or, `at_once`, from what memory holds. Throws Error for
  /// what cannot be.
  void rescale(const coordinator::WorldWish& wish, bool at_once);
  /// Throws Error for what cannot be. Another node follows it when it hears of it, or says in its state why not.
  void restart(const ServiceId& id, const std::optional<coordinator::ServiceBinary>& binary);
  /// Every service of every node writes the stacks of its threads beside its log.
  void order_stacks();
  /// See Changes.
  ChangeState change(const std::vector<Changes::Value>& values);
  ChangeState change_state(std::uint64_t number);
  /// See OptimizerSwap.
  SwapReport swap(const SwapOrder& order);
  SwapReport swap_report(std::uint64_t epoch);
  /// The optimizer in force, and the swap that is under way.
  std::string optimizer();
  std::optional<SwapReport> swap_under_way() { return swap_.under_way(); }

  // What others look at.
  /// Whether this service is to end now that its work is done.
  bool wants_end_of(const ServiceId& id);
  /// "training", "recovering" or "stopping".
  const char* state();
  coordinator::KeyValueStore& store() { return store_; }
  const coordinator::Membership& membership() const { return membership_; }
  const coordinator::NodeTable& nodes() const { return nodes_; }
  Crew& crew() { return crew_; }
  const SupervisorParts& parts() const { return parts_; }
  std::vector<coordinator::RestartEvent> restart_events() const { return restarts_.newest(); }
  std::optional<std::uint64_t> last_checkpoint() const { return last_committed_; }
  /// Seconds; when the world was left.
  double left_at() const { return end_.began(); }
  /// Why the world forms again, after `run` has said so.
  const std::optional<coordinator::RestartEvent>& forming_again() const { return forming_again_; }
  /// What does not work while training goes on.
  std::vector<std::string> degraded() const { return degraded_.texts(); }

 private:
  enum class Phase { working, rescuing, finishing, halting };
  bool is_ending() const { return phase_ == Phase::finishing || phase_ == Phase::halting; }

  void ended(ServiceProcess& process, const os::Ending& ending);
  void announce(std::optional<std::uint64_t> generation);
  void consider_first_generation();
  void on_signal(int number);
  void tick();
  void watch_nodes(double now);
  void form_again(const std::string& why, const std::vector<int>& lost, double detect);
  void rescue(const std::string& why, const std::vector<int>& lost);
  void watch_rescue(double now);
  bool watch_others_in_rescue(double now);
  void leave_after(std::uint64_t step);
  std::uint64_t durable();
  std::optional<std::uint64_t> step_to_rescue();
  void leave_world(const std::string& why);
  void begin_rescale(const coordinator::WorldWish& wish, const std::string& cause);
  void rescale_after_step(const coordinator::WorldWish& wish, const std::string& cause);
  void resume_rescale();
  double checkpoint_grown(double now) const;
  void say_who_is_awaited(double now);
  coordinator::NodeWishes wishes(int node, double now);
  void note_restarts();
  void note_formed();
  void watch_restarts();
  void note_where(const std::string& reason);
  void watch_draining(double now);
  void watch_time_limit();
  void watch_changes();
  std::vector<std::optional<coordinator::EpochProgress>> epochs_elsewhere() const;
  StepSurroundings around();
  void make_good(std::uint64_t before);
  void write_steps(const std::function<void()>& write);
  void note_metrics();
  void worker_left(ServiceProcess& process);
  void note_leaving();
  void consider_finish();
  void finish();
  void halt(Outcome outcome, bool hard);
  void press_on(double now);
  void consider_over();

  SupervisorParts parts_;
  Crew crew_;
  CrewEnd end_;
  Degraded degraded_;
  coordinator::NodeTable nodes_;
  coordinator::Membership membership_;
  coordinator::KeyValueStore store_;
  coordinator::CheckpointParts checkpoint_parts_;
  Epochs epochs_;
  Changes changes_;
  OptimizerSwap swap_;
  TimeLimit limit_;  // of the batch job
  boost::asio::steady_timer timer_, farewell_, restart_timer_;
  Phase phase_ = Phase::working;
  Outcome outcome_;
  bool stopping_ = false, hard_ = false;
  bool rescaling_ = false;  // it stops for another world
  coordinator::RestartBook restarts_;
  bool looks_often_ = false;  // restart_timer_ runs
  bool resumed_ = false;      // a launcher before this one has announced a generation
  int interrupts_ = 0;
  double began_ = now_seconds();
  std::string awaited_;        // nodes, as the last line named them
  std::set<int> spares_told_;  // nodes that wait for a place, of which a line was shown
  std::optional<coordinator::RestartEvent> forming_again_;
  struct Rescue {
    std::vector<int> lost;  // nodes
    std::vector<coordinator::StandIn> stand_ins;
    double began = 0;                                 // seconds
    std::optional<coordinator::RescueOrder> order{};  // once no worker lives any more
  };
  std::optional<Rescue> rescue_;  // while the phase is rescuing
  double first_left_ = 0;         // seconds; a worker of the world has left, its work done; 0: none yet
  double draining_since_ = 0;     // seconds; all workers have left; 0: not yet
  struct GivenRestart {
    coordinator::RestartOrder order;
    double given = 0;  // seconds
  };
  std::vector<GivenRestart> orders_;  // for services on other nodes
  std::uint64_t stacks_order_ = 0;    // number of the newest
  double stacks_ordered_ = 0;         // seconds, when
  std::optional<std::uint64_t> last_committed_;
};

}  // namespace ganymede::launcher
