#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "services/optimizer/cell_memory.h"
#include "services/optimizer/plugin.h"
#include "services/optimizer/update_engine.h"

namespace ganymede::optimizer {

/// A built-in plugin as it is built, loaded once.
const Plugin& plugin(const std::string& name);
inline const Plugin& adamw() { return plugin("adamw"); }
/// Those of a configuration.
Tables tables_of(const config::Config& config);

/// Defaults of the hyper-parameters of a configuration's plugins, in the order of a record.
std::vector<double> default_hyper(const config::Config& config);

/// All values that a step changes, for comparison bit by bit.
struct Values {
  std::vector<float> master;
  std::vector<std::vector<float>> state;
  std::vector<std::byte> working;
  bool operator==(const Values&) const = default;
};

/// One cell of a small model in plain memory, with a worker that decides steps from keyed random gradients.
class Cell {
 public:
  static config::Config small_config(config::ParameterWire wire = config::ParameterWire::fp32);
  /// The same with Muon for the matrices of its layers.
  static config::Config muon_config(config::ParameterWire wire = config::ParameterWire::fp32);
  /// With NorMuon.
  static config::Config normuon_config(config::ParameterWire wire = config::ParameterWire::fp32);

  explicit Cell(const config::Config& config, int side_slots = 6, int rank = 0);

  UpdateEngine engine(int threads = 1) { return UpdateEngine(placement, tables_of(config), memory, options(threads)); }
  EngineOptions options(int threads = 1) const;

  struct Decision {
    bool apply = true, snapshot_after = false, stop_after = false;
    std::vector<double> hyper{};  // none: the defaults of the plugins
  };
  /// Writes gradients, counts, reductions and record of the next step, then decides it.
  void decide(const Decision& decision);
  void decide() { decide(Decision{}); }
  /// Carries out actions until the engine waits for a decision.
  static void finish(UpdateEngine& engine);
  /// The same, as the worker of this cell when it waits for matrices.
  void finish_with_matrices(UpdateEngine& engine);
  /// What the worker does, where the first phases are complete: a function of what is sent, instead of Newton–Schulz
  /// and update_matrix.
  void return_matrices();

  /// A server's death, right after what it carried out last: an action on a tile, or one of the whole cell.
  struct Death {
    std::optional<TileEvent> tile{};
    step_protocol::UpdateAction action{};  // if no tile
  };
  /// Applies what is decided with servers that die: each after the first time that it carried out an action of one
  /// kind on one tile, or on one span, so that over all of them every boundary was a death once. `torn` is called with
  /// each death.
  void finish_with_deaths(const std::function<void(const Death&)>& torn);
  /// Tiles of a step.
  std::uint64_t tiles() const;
  const placement::Chunk& chunk_of(const TileEvent& event) const { return placement.chunks[event.tile.chunk]; }
  /// New values of a slot (0: the master) of the tile that a strip is in.
  float* redo_of(const TileEvent& event, std::size_t slot) {
    return &memory.redo[(event.strip * (1 + memory.state.size()) + slot) * placement::tile_elements];
  }

  std::uint64_t committed() const;
  std::uint64_t chunks() const { return placement.chunks.size(); }
  Values values() const;

  config::Config config;
  placement::Placement placement;
  CellMemory memory;
  std::uint64_t epoch = 0;  // of its server

 private:
  std::unique_ptr<step_protocol::ControlBlock> control_;
  std::unique_ptr<step_protocol::EpochWords> words_;
  std::vector<step_protocol::Word> ready_, marks_, flags_, sent_words_, returned_words_;
  std::vector<step_protocol::StripWords> strips_;
  std::vector<std::int64_t> counts_;
  std::vector<float> gradients_, master_, redo_, images_, sent_, returned_;
  std::vector<std::vector<float>> state_;
  std::vector<std::uint64_t> began_;
  std::vector<double> reductions_;
  std::vector<std::byte> working_;
};

/// What a cell with an optimizer of matrices holds after each of so many steps.
std::vector<Values> undisturbed_with_matrices(const config::Config& config, int steps);

}  // namespace ganymede::optimizer
