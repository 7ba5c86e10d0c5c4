#pragma once

#include <cstdint>
#include <string>

#include "services/checkpoint/checkpoint_view.h"

namespace ganymede::checkpoint {

/// Writes the fp32 master parameters as one safetensors file, sorted by name, metadata {"format": "pt", "step": "N"}.
/// Streamed: memory is one value. The file appears under its name when it is whole; an error leaves nothing. Returns
/// the file's size in bytes. Throws Error (damage, a full disk).
std::uint64_t dump(CheckpointView& view, const std::string& path, const Progress& progress);

}  // namespace ganymede::checkpoint
