#pragma once

#include <cstdint>
#include <string>

namespace ganymede::service {

/// A checkpoint as a person names it: "runs/a" (the newest of that run or checkpoint folder), "runs/a@120" (its one of
/// step 120), or "120" (that of the run itself).
struct CheckpointName {
  std::string folder;      // empty: of the run itself
  std::uint64_t step = 0;  // 0: the newest
  bool own() const { return folder.empty() && step > 0; }
};

/// A path that is there is a folder, whatever it is called; a folder called 120 is "./120". Empty for an empty text.
CheckpointName read_checkpoint_name(const std::string& text);
/// Reads back as the same.
std::string text_of(const CheckpointName& name);

}  // namespace ganymede::service
