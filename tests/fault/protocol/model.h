#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/step_protocol/control_block.h"

/// A model of W cells that carries out the production functions of common/step_protocol with every shared store as one
/// atomic move. What is computed is symbolic: the content of half a chunk is the list of the generations whose
/// gradients were applied to it, one nibble a step, so a step applied twice, lost, torn or mixed is visible.
namespace ganymede::fault {

constexpr int max_ranks = 3;
constexpr int max_chunks = 2;
constexpr int max_steps = 4;
constexpr int max_epochs = 2;
constexpr int max_strips = 2;

using Content = std::uint16_t;  // nibble i: generation of the gradients applied in step i + 1; 0: not applied
constexpr Content torn_content = 0xffff;

/// One rule switched off, so that the explorer is known to see what it guards against.
enum class Mutation : std::uint8_t {
  none,
  late_lane,                // rule 1: a lane of the aborted attempt lives on
  same_generation,          // rule 3: a restarted worker joins the generation that it died in
  generation_not_compared,  // rules 4 and 5
  vote_before_commit,       // rule 6
  leave_alone,              // rule 7: leaves when its own cell has committed
  decided_before_record,    // rule 9
  one_record_slot,          // the record of the step before is lost to a kill while the next one is written
  no_redo_area,             // the update is computed in place
  seal_before_redo,         // the seal is stored before the redo area is complete
  any_seal_believed,        // rule 13: the seal's step, chunk and tile are not compared
  snapshot_while_busy,      // rule 18: ordered although one is under way
  armed_late,               // rule 18: after the first copy of the next step
  no_before_image,          // rule 19
  flag_before_read,         // rule 19: the reader looks at the flag first
  no_check_before_report,   // rule 20: a cancelled snapshot is reported
  prepared_before_setting,  // rule 16: the number is stored before the setting lies in its slot
  newest_offer_followed,    // rule 16: a change takes effect although not all ranks offer it
  next_change_at_once,      // the next change is prepared before a step has followed the last one
  not_served_again,         // rule 14: a new generation goes on although a rank still needs its matrices
  sent_before_first_phase,  // rule 14: rows are sent before the phase that makes them is complete
  returned_before_rows,     // the word is stored before the rows lie in the segment
  no_cancel_after_restart,  // rule 20: a restarted checkpoint service takes the marks of its predecessor for its own
  standby_not_awaited,      // swap.h: gradients are written that a standby server has yet to follow
  adopted_before_slots,     // a standby server counts the step before it has taken over all of its state
  refused_alone,            // swap.h: a rank that refuses a swap ends it, whatever the others say
};

struct Configuration {
  int ranks = 1;
  int chunks = 1;  // of a cell; each is a bucket and a span of its own, of two tiles
  int strips = 1;  // that share the tiles of a chunk
  int steps = 2;
  int faults = 1;
  bool reader = false;  // with the checkpoint service
  int snapshot_every = 0;
  int image_slots = max_chunks;
  bool matrices = false;      // chunk 0 is the first phase of a whole matrix, chunk 1 the second
  int changes = 0;            // that a person orders, each at any moment after a step has followed the one before
  bool stop_request = false;  // one may arrive at any moment, cell by cell
  bool swap = false;          // the first change is of another optimizer, that follows one step before it takes over
  bool refusals = false;      // a cell may refuse it at any moment
  Mutation mutation = Mutation::none;
};

struct Record {
  std::uint8_t step = 0;  // torn_record while it is being written
  std::uint8_t generation = 0;
  std::uint8_t stop_after = 0, snapshot_after = 0, snapshot_before = 0, change = 0;
  std::uint8_t epoch = 0, swap_change = 0, swap_step = 0, refused = 0;
  bool operator==(const Record&) const = default;
};
constexpr std::uint8_t torn_record = 0xff;
constexpr int setting_slots = 2;  // as few as the protocol needs
constexpr std::uint8_t torn_setting = 0xff;

enum class WorkerAt : std::uint8_t {
  dead,
  joining,
  exchange_publish,
  exchange_wait,
  gather_publish,
  gather_wait,
  await_standby,
  gradient_first,
  gradient_second,
  offer,
  vote_publish,
  vote_wait,
  record_begin,
  record_end,
  decided,
  send_publish,
  send_wait,
  returned_first,
  returned_second,
  returned_word,
  leave_publish,
  leave_wait,
  finished,
};

enum class ReaderAt : std::uint8_t { dead, starting, idle, read_first, read_second, look, image, mark, report, end };

/// The segment of a state epoch, and its optimizer server. The state of a chunk has seen the same steps as the chunk.
struct Epoch {
  Content slot[max_chunks][2] = {}, redo[max_strips] = {};
  std::uint8_t chunks_done = 0, done[max_strips] = {}, seal[max_strips] = {};
  std::uint8_t alive = 0, adopted = 0, unused = 0;             // of the server; adopted: halves of a state
  std::uint8_t stage[max_strips] = {}, part[max_strips] = {};  // of the server, with each strip
};

struct Cell {
  // Segments: they outlive every process.
  Content master[max_chunks][2] = {}, working[max_chunks][2] = {}, image[max_chunks] = {};
  Content returned_rows[2] = {};              // what the worker has brought back of a matrix
  Content reader_value[2] = {};               // what the checkpoint service has read of its chunk
  std::uint8_t gradient[max_chunks][2] = {};  // generation × 16 + step
  std::uint8_t copy_ready[max_chunks] = {};
  Epoch epochs[max_epochs];
  std::uint8_t joined = 0, decided = 0, snapshot = 0, stop_request = 0, refused = 0;
  Record records[2];
  std::uint8_t prepared = 0, settings[setting_slots] = {};  // number of the setting in each slot, or torn_setting
  std::uint8_t read_mark[max_chunks] = {}, image_step[max_chunks] = {}, image_slot[max_chunks] = {};
  std::uint8_t returned = 0;  // newest step whose matrix is back
  std::uint8_t durable = 0;   // newest snapshot that the checkpoint service has reported

  // What the worker contributed last: slots of the collectives.
  std::uint8_t label_generation = 0, label_operation = 0;
  std::uint8_t exchange_generation = 0, exchange_committed = 0, exchange_decided = 0;
  Record exchange_record;
  std::uint8_t vote_generation = 0, vote_step = 0, vote_idle = 0, vote_stop = 0, vote_change = 0, vote_refused = 0;
  Record vote_previous;

  // Processes.
  WorkerAt worker = WorkerAt::joining;
  std::uint8_t worker_generation = 0, step = 0, bucket = 0, gathered_wrong = 0, offered = 0;
  Record pending;
  WorkerAt late = WorkerAt::dead;  // store that a lane of the aborted attempt still has before it
  std::uint8_t late_generation = 0, late_step = 0, late_bucket = 0;
  ReaderAt reader = ReaderAt::idle;
  std::uint8_t reader_step = 0, reader_chunk = 0, reader_wrong = 0, reader_flagged = 0;
};

struct State {
  Cell cells[max_ranks];
  std::uint8_t generation = 0, generation_due = 1, faults = 0, ordered = 0;
  Record history[max_steps + 1];  // the record of each step when it was first decided
};

/// A move of one process: what it did, for the trace.
struct Move {
  const char* what = "";
  std::uint8_t rank = 0;
  State state;
};

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The state of a run that begins.
State first_state(const Configuration& configuration);
/// Of the epoch in force.
int committed(const Configuration& configuration, const Cell& cell);
int committed(const Configuration& configuration, const Epoch& epoch);
/// That of the newest record.
int epoch_in_force(const Configuration& configuration, const Cell& cell);
/// Whose optimizer the setting of this number is for.
int epoch_of_change(const Configuration& configuration, int change);
/// What a chunk holds when exactly the decided steps 1 … step were applied to it.
Content expected_content(const State& state, int step);
/// Slot of the record of `step`.
int record_slot(const Configuration& configuration, int step);
/// The record as the production functions take it.
step_protocol::DecisionRecord production_record(const Record& record);
/// Whether nothing would die with the optimizer server.
bool holds_nothing(const Epoch& server);
/// The state with one move made by `rank`, to be filled in by the caller.
Cell& add_move(std::vector<Move>& moves, const State& state, int rank, const char* what);

// Each appends the moves that the process can make; an invariant that a move breaks throws Violation.
void worker_moves(const Configuration& configuration, const State& state, int rank, std::vector<Move>& moves);
/// Returns true when there are moves and none touches what another process reads or writes.
bool server_moves(const Configuration& configuration, const State& state, int rank, int epoch,
                  std::vector<Move>& moves);
void reader_moves(const Configuration& configuration, const State& state, int rank, std::vector<Move>& moves);
void launcher_moves(const Configuration& configuration, const State& state, std::vector<Move>& moves);
/// Kills of every process, while the budget of faults lasts; `only_server` ≥ 0: of that optimizer server alone, rank ×
/// max_epochs + epoch.
void crash_moves(const Configuration& configuration, const State& state, int only_server, std::vector<Move>& moves);

/// All moves of a state.
void all_moves(const Configuration& configuration, const State& state, std::vector<Move>& moves);
/// Throws Violation unless a state without moves is the end of a whole run.
void check_end(const Configuration& configuration, const State& state);

}  // namespace ganymede::fault
