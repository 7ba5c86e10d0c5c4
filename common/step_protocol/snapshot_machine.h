#pragma once

#include "common/step_protocol/control_block.h"

#include <cstdint>

/// The snapshot of a cell's master and state while the next step overwrites them (rules 18 to 20).
/// Word `snapshot` = step × 2 + armed. Per chunk, in segment `side`: `read_marks[chunk]` = the step for which the
/// reader is done with it, `image_flags[chunk]` = step × 2^24 + image slot + 1 when a before-image was saved.
namespace ganymede::step_protocol {

inline std::uint64_t armed_word(std::uint64_t step) { return step * 2 + 1; }
inline std::uint64_t ended_word(std::uint64_t step) { return step * 2; }
inline bool is_armed(std::uint64_t word) { return (word & 1) != 0; }
inline std::uint64_t snapshot_step(std::uint64_t word) { return word / 2; }

/// Whether the writer must save the chunk before it overwrites it.
inline bool needs_image(std::uint64_t snapshot_word, std::uint64_t read_mark, std::uint64_t image_flag) {
  std::uint64_t step = snapshot_step(snapshot_word);
  return is_armed(snapshot_word) && read_mark != step && (image_flag >> 24) != step;
}
inline std::uint64_t image_flag_word(std::uint64_t step, std::uint64_t slot) { return step << 24 | (slot + 1); }
/// Whether the reader must take the saved image instead of what it read; looked at after reading (rule 19).
inline bool image_taken(std::uint64_t image_flag, std::uint64_t step) { return (image_flag >> 24) == step; }
inline std::uint64_t image_slot(std::uint64_t image_flag) { return (image_flag & 0xffffff) - 1; }

}  // namespace ganymede::step_protocol
