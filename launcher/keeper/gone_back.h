#pragma once

/// That the run has gone back to the checkpoint that its command names (`train --from STEP`), kept where a crash of the
/// launcher does not reach: a launcher that is started again must not go back once more, behind what was trained since.
namespace ganymede::keeper {

/// Of the run in the current folder; it counts from the keeper's start to its end. Throws Error.
void note_gone_back();
bool has_gone_back();

/// Forgets that of a run before this one. Throws Error.
void clear_gone_back();

}  // namespace ganymede::keeper
