#include <array>
#include <cstddef>

#include "common/plan/plan.h"

namespace ganymede::plan {
namespace {

constexpr std::array<const char*, lane_count> lane_names = {"compute", "gather",    "reduce",
                                                            "to_host", "to_device", "host"};
constexpr std::array<const char*, operation_kinds> operation_names = {
    "wait_batch",     "gather",          "reshard",         "regather", "release", "forward",
    "offload",        "prefetch",        "recompute",       "backward", "reduce",  "accumulate",
    "replica_reduce", "store_gradients", "accumulate_norm", "vote",     "decide",  "wait_update"};
constexpr std::array<const char*, buffer_kinds> buffer_names = {
    "parameters", "gradients", "saved_input", "saved_indices", "saved_activations",
    "arena",      "exchange",  "scratch",     "node_share",    "sum"};
static_assert(operation_names.back() != nullptr && buffer_names.back() != nullptr);

}  // namespace

const char* name(Lane lane) { return lane_names.at(static_cast<std::size_t>(lane)); }

const char* name(OperationKind kind) { return operation_names.at(static_cast<std::size_t>(kind)); }

const char* name(BufferKind kind) { return buffer_names.at(static_cast<std::size_t>(kind)); }

}  // namespace ganymede::plan
