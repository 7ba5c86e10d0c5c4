#pragma once

#include <cstdint>

/// Codes that the optimizer server writes into its ServiceWords.
namespace ganymede::optimizer::operation {

constexpr std::uint64_t awaiting_decision = 0;
constexpr std::uint64_t applying = 1;  // with the bucket
constexpr std::uint64_t loading = 2;
constexpr std::uint64_t awaiting_matrices = 3;  // of the bucket, from the worker
constexpr std::uint64_t awaiting_reader = 4;    // the checkpoint service, for room in the side buffer

}  // namespace ganymede::optimizer::operation
