#pragma once

namespace ganymede::keeper {

/// Reaps every child that has ended, except `pid`, whose ending somebody else wants.
void reap_all_but(int pid);

/// Kills and reaps all children of this process, and theirs as they become ours (a subreaper inherits them). Throws
/// Error when one cannot be ended within 10 s.
void end_leftovers();

}  // namespace ganymede::keeper
