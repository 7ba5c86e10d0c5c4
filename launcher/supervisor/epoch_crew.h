#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "launcher/coordinator/node_state.h"
#include "launcher/supervisor/cells.h"
#include "launcher/supervisor/crew.h"
#include "launcher/supervisor/epoch_segments.h"
#include "launcher/supervisor/epochs.h"

namespace ganymede::launcher {

/// What one node does for a swap works with this; all of it outlives it.
struct EpochCrewParts {
  std::uint64_t job = 0;
  Cells& cells;
  Crew& crew;
  Epochs& epochs;
  shm::KeeperClient keeper = shm::KeeperClient();
};

/// One node's part of a swap: the segments of the new state epoch, and the standby servers of its cells, which become
/// the cells' servers once their records name the epoch. Used in one thread.
class EpochCrew {
 public:
  explicit EpochCrew(EpochCrewParts parts);

  /// Of a listed epoch. `prepare`: what has to be done in the thread that makes the segments, before.
  void begin(std::uint64_t epoch, std::function<void()> prepare = {});
  /// The same of one that was offered as this change by a launcher before this one.
  void go_on(std::uint64_t epoch, std::uint64_t change);
  /// The change stands prepared in the cells: from now on only the records say what becomes of it.
  void offered(std::uint64_t change);

  /// How far it is; nothing when there is no epoch but the one in force.
  std::optional<coordinator::EpochProgress> progress() const;
  /// Called several times a second.
  void watch(double now);
  /// Looks at the records at once, and whether the process that ended was beside those in force: then that is dealt
  /// with.
  bool ended(ServiceProcess& process, const os::Ending& ending);
  /// Whether the fault that a process reports is a standby's, and so costs the swap alone.
  bool fault(int pid, const std::string& text);
  /// A cell of this node that cannot follow the change, and why.
  struct Refusal {
    int rank = -1;
    std::string reason;
  };
  std::optional<Refusal> refusal(std::uint64_t change);

  /// All cells of the world are past it: gives back what the epoch before had.
  void settle();
  /// No record names it any more: takes everything back. False while something is left of it: to be called again.
  bool drop();

  /// By how much the segments of this node have grown since the run began.
  double grown_bytes() const { return grown_; }

 private:
  enum class Stage { idle, placing, starting, ready, offered, past, failed };

  void place(std::uint64_t epoch, std::function<void()> prepare);
  void start_standbys(double now);
  void await_standbys(double now);
  void promote();
  void fail_with(int rank, const std::string& reason);
  void standby_ended(ServiceProcess& process, const os::Ending& ending);
  bool refusal_is_decided(int rank);
  std::string standby_text() const;
  std::string slow_words(int rank);
  std::string words_of(const ServiceProcess& process, const os::Ending& ending);
  double bytes_of(std::uint64_t epoch);
  bool has_taken_over(int rank) { return parts_.cells.epoch_in_force(rank) == epoch_; }
  std::vector<int> ranks() const;

  EpochCrewParts parts_;
  Stage stage_ = Stage::idle;
  std::uint64_t epoch_ = 0, change_ = 0;  // change_: 0 before it is offered
  std::unique_ptr<EpochSegments> segments_;
  bool counted_ = false;              // the segments are in grown_
  double deadline_ = 0;               // seconds; for all standbys to be ready
  std::map<int, int> deaths_;         // of standbys, by rank
  std::map<int, std::string> words_;  // last ones of standbys, by rank
  Refusal refusal_;                   // of Stage::failed
  double grown_ = 0;
};

}  // namespace ganymede::launcher
