#pragma once

#include "common/config/config.h"
#include "common/placement/placement.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// The step plan: the ordered operations of one training step with their lanes, buffers and dependencies. Data, not
/// code: the executors of threads and of simulated time run the same plan (executor.h).
namespace ganymede::plan {

enum class Lane : std::uint8_t { compute, gather, reduce, to_host, to_device, host, exchange };
constexpr int lane_count = 7;
const char* name(Lane lane);

enum class OperationKind : std::uint8_t {
  wait_batch,
  gather,
  reshard,   // keeps this rank's share of a gathered bucket for the gathers that follow inside its node
  regather,  // brings a bucket together from the shares of this node
  release,
  forward,
  dispatch,
  combine,
  offload,
  prefetch,
  recompute,
  backward,
  reduce,
  accumulate,  // adds the sum of a micro-batch to that of those before it
  replica_reduce,
  store_gradients,
  accumulate_norm,
  vote,
  decide,
  wait_update,
  update_send,    // rows of matrices go to who orthogonalises them
  orthogonalise,  // the matrices of a bucket that this rank has to
  update_return,  // and what became of them comes back
};
constexpr std::size_t operation_kinds = static_cast<std::size_t>(OperationKind::update_return) + 1;
const char* name(OperationKind kind);
/// Whether it ends only when other ranks take part.
bool meets_others(OperationKind kind);

enum class BufferKind : std::uint8_t {
  parameters,
  gradients,
  saved_input,
  saved_indices,
  saved_activations,  // kept.h says what lies in it
  arena,
  exchange,
  scratch,
  node_share,  // of a bucket that is gathered again inside the node
  sum,         // of a micro-batch's gradients over ranks: what this rank holds of it
  matrices,    // whole ones whose rows came from several ranks
  orthogonal,  // what became of them
  rows_out,    // of matrices that others orthogonalise: on their way there, then what comes back
  rows_in,     // of matrices that this rank orthogonalises for others
};
constexpr int buffer_kinds = 14;
const char* name(BufferKind kind);

/// The part of a layer that an operation computes. A layer whose tokens travel to experts of other ranks is computed in
/// two parts with dispatch and combine between them.
enum class Part : std::uint8_t {
  whole,
  attention,  // and the router: what needs the dense bucket
  experts,    // what needs the experts bucket
};
const char* name(Part part);

/// What an exchange buffer holds of the rows that travel. S, N: the rows of ExchangeForm::sent and received.
enum class Travel : std::uint8_t {
  none,       // the buffer is of something else
  own,        // uneven form: this rank's rows [T, H] and choices [T, 2K]
  staged,     // uneven form: rows [S, H] and choices [S, 2K] in order of their destination
  received,   // rows [N, H] and choices [N, 2K]; in the even form this rank's own lie in their place
  results,    // what the experts make of them [N, H], where `received` is kept
  gradients,  // of the results [N, H], then by the received rows; and by routing weights [N, K]
  returned,   // what came back: uneven form [S, H], in backward [S, K] too; even form: its fp32 sum [T, H]
  combined,   // gradients by this rank's rows [T, H] and routing weights [T, K]
};

const char* name(Travel travel);

/// A buffer of the worker's owned pool. Its place is fixed when the plan is built, so the peak is known before a
/// step runs.
struct Buffer {
  std::string name;  // "parameters layer.3.experts"
  BufferKind kind{};
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // in the pool (or in the arena segment for BufferKind::arena)
  int bucket = -1;          // index in Placement::buckets, -1 for none
  int layer = -1;           // as in Operation
  int row = -1;
  Travel travel = Travel::none;
};

struct Operation {
  OperationKind kind{};
  Lane lane{};
  int bucket = -1;           // index in Placement::buckets, -1 for none
  int layer = -1;            // model layer; -1 embedding, layers.size() head
  std::int64_t bytes = 0;    // moved by this rank (of tokens: ExchangeBytes)
  int row = -1;              // row of this rank that it computes; -1: not of one row
  Part part = Part::whole;   // of the layer
  std::string wire{};        // "fp32", "bf16", "fp8"; empty where nothing crosses a wire
  std::vector<int> takes{};  // buffers that come to life with it
  std::vector<int> frees{};  // buffers whose life ends when it is complete
  std::vector<int> uses{};   // buffers that it reads or writes besides those
  std::vector<int> after{};  // operations that must be complete before it starts (other lanes; its own
                             // lane's order is implied). Among them are, directly or through others, all that free
                             // a buffer and stand before it: so buffers are taken in the order of the list, however
                             // the lanes run, and the peak is the same in every execution.
};

struct StepPlan {
  std::vector<Operation> operations;  // in an order that respects all dependencies
  std::vector<Buffer> buffers;
  std::int64_t pool_bytes = 0;  // size of the pool, exact
  std::int64_t peak_bytes = 0;  // most bytes alive at once, exact, by the buffers' lifetimes
  std::int64_t arena_bytes = 0;
  std::int64_t rotary_bytes = 0;  // tables of rotations, beside the pool
};

/// update: what a step has after its decision, for a step that was decided before (matrices alone). skip: a step of
/// which nothing is computed, because its batch is left out.
enum class PlanKind { train, validate, update, skip };

/// Whether a rank holds the bucket whole (a shard group of one, state not sharded over replicas): then its gradients
/// are written to the segment `gradients` in place, and its parameters are read from the segment `working`, unless they
/// are fp8 there, without a buffer or a copy.
bool in_place(const placement::Bucket& bucket);

/// Layers whose saved inputs lie in the arena: the first ceil(offload.fraction · layers).
int offloaded_layers(const config::Config& config);

/// Bytes of one row's hidden state [seq_len, hidden] in the compute type, rounded up to `buffer_alignment`.
std::int64_t hidden_bytes(const config::Config& config);

/// Bytes of the tables of rotations: one for each base, or for each layer (rope_cache).
std::int64_t rotary_bytes(const config::Config& config);

constexpr std::int64_t buffer_alignment = 64;  // bytes

/// A pure function. Throws Error(usage) for choices that do not fit one another.
StepPlan build(const config::Config& config, const placement::Placement& placement, PlanKind kind);

/// Ends the process when the plan breaks an invariant: dependencies acyclic, every buffer taken once before use and
/// freed once after, no two buffers alive at once overlap, peak as stated.
void check(const StepPlan& plan);

/// A table a person reads: one line an operation.
std::string print(const StepPlan& plan, const placement::Placement& placement);

}  // namespace ganymede::plan
