#include <array>
#include <cstddef>

#include "common/plan/plan.h"

namespace ganymede::plan {
namespace {

constexpr std::array<const char*, lane_count> lane_names = {"compute",   "gather", "reduce",  "to_host",
                                                            "to_device", "host",   "exchange"};
constexpr std::array<const char*, operation_kinds> operation_names = {
    "wait_batch", "gather",      "reshard",        "regather",        "release",         "forward",
    "dispatch",   "combine",     "offload",        "prefetch",        "recompute",       "backward",
    "reduce",     "accumulate",  "replica_reduce", "store_gradients", "accumulate_norm", "vote",
    "decide",     "wait_update", "update_send",    "orthogonalise",   "update_return"};
constexpr std::array<const char*, buffer_kinds> buffer_names = {
    "parameters", "gradients",  "saved_input", "saved_indices", "saved_activations", "arena",    "exchange",
    "scratch",    "node_share", "sum",         "matrices",      "orthogonal",        "rows_out", "rows_in"};
static_assert(operation_names.back() != nullptr && buffer_names.back() != nullptr);

}  // namespace

const char* name(Lane lane) { return lane_names.at(static_cast<std::size_t>(lane)); }

const char* name(OperationKind kind) { return operation_names.at(static_cast<std::size_t>(kind)); }

bool meets_others(OperationKind kind) {
  switch (kind) {
    case OperationKind::gather:
    case OperationKind::regather:
    case OperationKind::dispatch:
    case OperationKind::combine:
    case OperationKind::reduce:
    case OperationKind::replica_reduce:
    case OperationKind::vote:
    case OperationKind::update_send:
    case OperationKind::update_return:
      return true;
    default:
      return false;
  }
}

const char* name(Part part) {
  constexpr std::array<const char*, 3> names = {"", "attention", "experts"};
  return names.at(static_cast<std::size_t>(part));
}

const char* name(Travel travel) {
  constexpr std::array<const char*, 8> names = {"",        "own",       "staged",   "received",
                                                "results", "gradients", "returned", "combined"};
  return names.at(static_cast<std::size_t>(travel));
}

const char* name(BufferKind kind) { return buffer_names.at(static_cast<std::size_t>(kind)); }

}  // namespace ganymede::plan
