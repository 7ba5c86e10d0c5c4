#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/shm/keeper_client.h"
#include "launcher/keeper/sign_of_life.h"
#include "launcher/supervisor/cells.h"
#include "launcher/supervisor/options.h"
#include "launcher/supervisor/phase_server.h"
#include "launcher/supervisor/run_begin.h"
#include "launcher/supervisor/signals.h"
#include "launcher/supervisor/terminal.h"

namespace ganymede::launcher {

/// What the launcher of any node holds from its start to its end. Options and programs must outlive it.
struct Launching {
  /// Throws Error when another launcher serves this run directory.
  Launching(const Options& given, const std::string& folder);

  const Options& options;
  const std::string& programs;  // folder
  keeper::SignOfLife life;
  Signals signals;
  Terminal terminal;
  shm::KeeperClient keeper;
  ReadyRun ready;
  coordinator::Members members;             // nodes that take part
  std::vector<std::string> world_settings;  // of a world that is not the recipe's, behind the options'
  std::unique_ptr<PhaseServer> door;        // while there are no services; made before any work that takes long

  /// This node's.
  coordinator::RankRange ranks() const { return coordinator::ranks_of(options.node, members, ready.config); }
  /// The recipe with all settings. Throws Error.
  config::Config recipe() const;
  /// Makes `door` again, after the services have ended.
  void open_door();
  /// What this launcher does now, for those who ask.
  void enter(const std::string& phase) { door->enter(phase); }
  /// The segments of the launcher before this one, and `ready` as it was, if they are complete and of `job` (0: of any
  /// job). What is left otherwise is given back.
  std::optional<Cells> intact_cells(std::uint64_t job);
  /// New ones for the run that is ready.
  Cells new_cells();
};

}  // namespace ganymede::launcher
