#pragma once

#include "common/step_protocol/swap.h"
#include "common/step_protocol/tile_machine.h"
#include "common/step_protocol/update_machine.h"
#include "tests/fault/protocol/model.h"

/// One optimizer server of the model, and one strip of the chunk that it updates.
namespace ganymede::fault {

using step_protocol::ServerPart;
using step_protocol::TileAction;
using step_protocol::TileActionKind;
using step_protocol::TileStage;
using step_protocol::UpdateAction;
using step_protocol::UpdateActionKind;

struct Server {
  const Configuration& configuration;
  const State& state;
  int rank, number;  // number: of the epoch
  std::vector<Move>& moves;
  const Cell& cell = state.cells[rank];
  const Epoch& own = cell.epochs[number];
  const Record& newest = cell.records[record_slot(configuration, cell.decided)];
  ServerPart role =
      step_protocol::part_of(production_record(newest), static_cast<std::uint64_t>(number),
                             static_cast<std::uint64_t>(epoch_of_change(configuration, newest.swap_change)));
  bool applies = role == ServerPart::applies;

  bool mutated(Mutation mutation) const { return configuration.mutation == mutation; }
  Cell& move(const char* what) const { return add_move(moves, state, rank, what); }
  /// The same, and what it does to the epoch.
  Epoch& own_move(const char* what) const { return move(what).epochs[number]; }

  step_protocol::UpdateWords words() const;
  bool publish() const;
  bool adopt() const;
  bool arm_late(const UpdateAction& action) const;
  bool act() const;
  bool update(const UpdateAction& action) const;
  bool count(const UpdateAction& action) const;
};

/// One strip of the chunk that is being updated. With one strip it has both halves of the chunk, one tile each.
struct Strip {
  const Server& server;
  const UpdateAction& action;
  int index;
  const Configuration& configuration = server.configuration;
  const Cell& cell = server.cell;
  const Epoch& own = server.own;
  int chunk = static_cast<int>(action.chunk), step = static_cast<int>(action.step);

  TileAction next() const;
  int half(const TileAction& tile) const { return configuration.strips == 1 ? static_cast<int>(tile.tile) : index; }
  Cell& move(const char* what) const { return server.move(what); }
  Epoch& own_of(Cell& next) const { return next.epochs[server.number]; }
  Cell& done(const char* what, TileActionKind kind) const {
    Cell& next = move(what);
    own_of(next).stage[index] = static_cast<std::uint8_t>(after(static_cast<TileStage>(own.stage[index]), kind));
    own_of(next).part[index] = 0;
    return next;
  }
  Content updated(int half) const;
  std::uint8_t position(const TileAction& tile) const;
  bool compute(const TileAction& tile) const;
  bool copy(const TileAction& tile) const;
  bool copy_state(int half) const;
  bool save_image() const;
  bool act(const TileAction& tile) const;
};

}  // namespace ganymede::fault
