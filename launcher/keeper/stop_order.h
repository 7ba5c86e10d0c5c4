#pragma once

/// What a person ordered of a run's end, kept where a crash of the launcher does not reach: a launcher that is started
/// again must not train on when the one before was told to stop.
namespace ganymede::keeper {

enum class StopOrder { none, after_step, now };

/// Of the run in the current folder; it counts from the keeper's start to its end. Orders are only raised, by keeper
/// and launcher alike. An order that cannot be noted (a full disk) is logged and no error: it is needed only if the
/// launcher crashes as well.
void note_stop_order(StopOrder order);
StopOrder read_stop_order();

/// Forgets the orders of a run before this one. Throws Error.
void clear_stop_order();

}  // namespace ganymede::keeper
