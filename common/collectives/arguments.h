#pragma once

#include <cstdint>
#include <span>

#include "common/collectives/collectives.h"

/// Checks of what a collective is called with: faults of the caller, so they end the process.
namespace ganymede::collectives {

void check_offsets(std::span<const std::size_t> offsets, int size, std::size_t bytes, const char* operation);
void check_gather(ConstBytes mine, Bytes all, std::span<const std::size_t> offsets, int size, int place);
void check_exchange(ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                    std::span<const std::size_t> receive_offsets, int size, int place);
/// `elements`: of the contribution.
void check_sum(std::size_t elements, std::span<const std::int64_t> cut, std::span<float> sum, int size, int place);

}  // namespace ganymede::collectives
