#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/service/run_directory.h"
#include "common/service/service.h"
#include "launcher/coordinator/rescue.h"
#include "launcher/coordinator/restart_book.h"

/// What a launcher knows of its node and tells the coordinator: state, not news, so that a report may be lost or come
/// twice.
namespace ganymede::coordinator {

struct ServiceState {
  service::Kind kind{};
  int pid = 0;
  std::string state = {};  // "running", "restarting", …
  int restarts = 0;
  std::string detail = {}, operation = {};
  double age_seconds = 0;     // of the operation
  std::string binary = {};    // that it runs in the place of the installed program; empty: that one
  bool trial = false;         // `binary`, or the return to the installed one, has not proved itself yet
  std::string refusal = {};   // why the newest binary that was ordered is not run; empty: it is
  std::uint64_t refused = 0;  // number of that order
};

struct CellState {
  int rank = 0;
  bool present = false;      // its worker runs and has registered
  bool loaded = false;       // the optimizer server has the state
  bool finished = false;     // its worker has left, its work done
  bool running = false;      // every service runs, or has finished
  std::uint64_t formed = 0;  // newest generation in which its worker has met the others
  std::uint64_t lost = 0;    // workers that ended before their work was done, in this session
  std::vector<ServiceState> services;
  std::uint64_t decided = 0;  // its newest step
};

/// A part of a checkpoint that is durable. It stays in the state, because a coordinator may die after it has heard of
/// it.
struct PartState {
  int rank = 0;
  std::uint64_t step = 0, bytes = 0;
  std::string hash;
};

enum class StopWish { none, after_step, now };

/// What a node does for the optimizer that a swap leads to, see EpochCrew.
enum class EpochStage { placing, starting, ready, past, failed };
struct EpochProgress {
  std::uint64_t epoch = 0;
  EpochStage stage = EpochStage::placing;
  int rank = -1;       // of a refusal; -1: none of the node's cells
  std::string reason;  // of it; empty: there is none
};

struct NodeState {
  int node = 0;
  std::uint64_t seat = 0;        // one keeper's life
  std::uint64_t session = 0;     // one launcher's life
  int pid = 0, keeper_pid = 0;   // of the launcher
  std::uint64_t generation = 0;  // the highest that any cell was told or joined
  int restarts = 0;              // of services
  std::vector<CellState> cells;
  StopWish stop = StopWish::none;  // what a person asked of this launcher
  bool ended = false;              // no service lives any more, and none will
  int exit_code = 0;               // of `failure`
  std::string failure;             // why the run cannot go on here; empty: nothing
  double checkpoint_idle = 0;      // seconds since a checkpoint service here made progress
  std::vector<PartState> parts;    // of the newest checkpoints
  std::optional<EpochProgress> epoch = {};
  std::vector<RestartEvent> restart_events = {};  // the newest, up to `restart`
  bool settled = false;                           // no worker lives any more, because the world is `rescuing`
};

/// How far the run is on its way to the end; or, `reforming`, on its way to another world, before which its memory may
/// be saved (`rescuing`).
enum class Phase { working, finishing, halting, killing, reforming, rescuing };

/// A program that a service runs in the place of the installed one.
struct ServiceBinary {
  std::string file;        // in the run directory, see service::program_folder; empty: the installed one
  std::string path;        // where it was copied from
  std::uint64_t hash = 0;  // of its content
  std::string protocol;    // what it says of itself, see service::protocol
};

struct RestartOrder {
  service::Kind kind{};
  int rank = 0;
  std::uint64_t number = 0;                  // grows with each order
  std::optional<ServiceBinary> binary = {};  // to be run from now on; nothing: the one that it has
};

/// The optimizer that a swap leads to.
struct EpochOrder {
  std::uint64_t epoch = 0;
  std::string configuration;
  std::vector<service::JobPlugin> plugins;
};

/// What the coordinator wants of a node.
struct NodeWishes {
  std::uint64_t generation = 0;
  Phase phase = Phase::working;
  bool leaving = false;  // a worker of the world has left, its work done: others are not replaced any more
  int exit_code = 0;     // of the run, with `text`
  std::string text;
  std::vector<RestartOrder> restarts;                 // the newest of each service
  std::optional<step_protocol::Setting> change = {};  // the newest that was prepared; nothing: the run's beginning
  std::optional<EpochOrder> epoch = {};               // of the swap that is under way
  std::uint64_t stacks = 0;                           // newest order to write stacks, a number that grows; 0: none
  std::optional<RescueOrder> rescue = {};             // once all workers of the world have ended
};

}  // namespace ganymede::coordinator
