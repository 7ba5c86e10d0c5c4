#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace ganymede::coordinator {

/// One replacement of a process, from its fault to the first step after it. Durations in seconds, absent while they
/// are not known.
struct RestartEvent {
  std::uint64_t number = 0;  // grows on its node, also over its launchers
  int node = 0;
  std::string process = {};  // "worker of rank 1"
  bool worker = false;       // the ranks have to meet again
  std::string cause = {};    // "killed by SIGKILL"
  double detect = 0;         // that it stood still or was silent until it was ended; 0 for one that ended by itself
  std::optional<double> restart = {};  // from its end until its replacement was there, or had ended as well
  std::optional<double> reform = {};   // until the ranks had met again; 0 where they need not
  std::optional<double> redo = {};     // until the next step was decided
  std::uint64_t step = 0;              // newest decided one when its end became known
  std::uint64_t generation = 0;        // that its end led to; 0: none
};

/// For an event, or an order, of this node that is made now: it grows over the life of the machine, so also over
/// launchers.
std::uint64_t event_number();

/// All restarts of a run, as the coordinator hears of them. The clock is the caller's (seconds). Not thread-safe.
class RestartBook {
 public:
  /// What `node` knows of one of its events, which may be known here already. `decided`: the newest step;
  /// `generation`: in which the ranks meet again.
  void take(int node, const RestartEvent& event, double now, std::uint64_t decided, std::uint64_t generation);
  /// `formed`: the generation in which all ranks work now; 0: none.
  void watch(double now, std::uint64_t formed, std::uint64_t decided);
  /// Whether one is not over: then `watch` wants to be called often, because that is how exact the durations are.
  bool open() const;
  /// Those that are over, each given once, in the order of their ends.
  std::vector<RestartEvent> take_finished();
  /// The newest, oldest first.
  std::vector<RestartEvent> newest() const;

  static constexpr std::size_t kept = 16;

 private:
  struct Entry {
    RestartEvent event;
    double back = 0, formed = 0;  // when the replacement was, and the ranks were, there
    bool given = false;
  };
  std::deque<Entry> entries_;  // at most `kept`
};

}  // namespace ganymede::coordinator
