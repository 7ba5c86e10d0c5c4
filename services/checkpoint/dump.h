#pragma once

#include <cstdint>
#include <string>

#include "services/checkpoint/checkpoint_view.h"

namespace ganymede::checkpoint {

/// Writes the fp32 master parameters as one safetensors file, sorted by name, metadata {"format": "pt", "step": "N"}.
/// Streamed: memory is one value. The file appears under its name when it is whole; an error leaves nothing. Returns
/// the file's size in bytes. Throws Error (damage, a full disk); Error(usage) when `path` is there, unless it is a file
/// and `force`.
std::uint64_t dump(CheckpointView& view, const std::string& path, bool force, const Progress& progress);

}  // namespace ganymede::checkpoint
