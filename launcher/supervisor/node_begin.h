#pragma once

#include <cstdint>
#include <string>

#include "launcher/supervisor/options.h"
#include "launcher/supervisor/signals.h"
#include "launcher/supervisor/terminal.h"

/// How the launcher of a node other than 0 finds the coordinator and learns what the run is.
namespace ganymede::launcher {

/// What the coordinator tells a node that may take part.
struct Welcome {
  std::uint64_t job = 0, load_step = 0, plugin_hash = 0;
  std::string load_from;
  std::string configuration;  // the effective one
  std::string checkpoints;    // token in the checkpoint folder
  std::string dataset;        // hash of its content
  coordinator::Members members = {};
};

/// Where the coordinator is and the key to it.
struct CoordinatorWay {
  std::string endpoint, key;
};

/// Waits for the key file of the run (or takes the one that was named). Throws Error: at the deadline, for a file that
/// holds no key, and when a signal comes.
CoordinatorWay find_coordinator(const Options& options, double seconds, Signals& signals);

/// Asks the coordinator until it is ready, which a spare may wait for to the end of the run. `seconds`: how long it may
/// be silent. Throws Error when it is (can_go_on if it has answered before), when it refuses this node, and when a
/// signal comes.
Welcome meet_coordinator(const Options& options, const CoordinatorWay& way, std::uint64_t seat, double seconds,
                         Signals& signals, Terminal& terminal);

/// The same for all launchers of one keeper's life, and no other.
std::uint64_t seat_of_keeper(const std::string& run);

/// The token that the coordinator leaves in the checkpoint folder, and the check on another node that its checkpoint
/// folder is the same one, which may take `seconds` to show. Both throw Error.
void leave_checkpoint_token(const std::string& token);
void check_checkpoint_folder(int node, const std::string& token, double seconds, Signals& signals);

}  // namespace ganymede::launcher
