#include "common/plan/simulated/timeline.h"

#include <algorithm>
#include <array>
#include <limits>

#include "common/base/error.h"

namespace ganymede::plan {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// From event to event; an event is an end of an operation or a time from which one may start.
class Simulation {
 public:
  Simulation(const StepPlan& plan, const OperationCosts& costs)
      : plan_(plan), costs_(costs), spans_(plan.operations.size()), done_(plan.operations.size()) {
    for (std::size_t i = 0; i < plan.operations.size(); ++i) lane(i).queue.push_back(i);
  }

  std::vector<Span> run() {
    for (double now = 0; now != never; now = next_event(now)) {
      end_what_is_due(now);
      while (begin_what_can(now)) end_what_is_due(now);
    }
    bool all = std::all_of(done_.begin(), done_.end(), [](bool done) { return done; });
    GANYMEDE_CHECK(all, "an operation never ends: durations are finite, and operations wait for earlier ones");
    return std::move(spans_);
  }

 private:
  struct Lane {
    std::vector<std::size_t> queue;
    std::size_t next = 0;  // in the queue: under way, or the one that waits
    bool under_way = false;
    double end_ms = 0;  // of what is under way, if nothing changes
  };

  Lane& compute_lane() { return lanes_[static_cast<std::size_t>(plan::Lane::compute)]; }
  Lane& lane(std::size_t operation) { return lanes_[static_cast<std::size_t>(plan_.operations[operation].lane)]; }
  double length(std::size_t i) const { return i < costs_.durations_ms.size() ? costs_.durations_ms[i] : 0; }
  double earliest(std::size_t i) const { return i < costs_.earliest_ms.size() ? costs_.earliest_ms[i] : 0; }
  Link link(std::size_t i) const { return i < costs_.links.size() ? costs_.links[i] : Link::none; }
  double taken(std::size_t i) const { return i < costs_.taken.size() ? costs_.taken[i] : 0; }

  /// How long computation takes for a millisecond of work beside the transfers that are under way: at least a
  /// hundredth of the device stays its own.
  double slowness() const {
    double all = 0;
    for (const Lane& other : lanes_)
      if (other.under_way) all += taken(other.queue[other.next]);
    return 1 / std::max(0.01, 1 - all);
  }

  /// What is left of the computation under way takes longer or shorter than when its slowness was `before`.
  void change_slowness(double before, double now) {
    Lane& compute = compute_lane();
    double after = slowness();
    if (compute.under_way && after != before) compute.end_ms = now + (compute.end_ms - now) * after / before;
  }

  bool may_begin(const Lane& lane) const {
    if (lane.under_way || lane.next == lane.queue.size()) return false;
    const std::vector<int>& after = plan_.operations[lane.queue[lane.next]].after;
    return std::all_of(after.begin(), after.end(), [&](int i) { return done_[static_cast<std::size_t>(i)]; });
  }

  /// One transfer more or less on a link: what is left of the others takes as much longer or shorter.
  int& change_share(Link over, int change, double now) {
    int& sharing = sharing_[static_cast<std::size_t>(over)];
    int before = sharing;
    sharing += change;
    for (Lane& other : lanes_) {
      if (!other.under_way || link(other.queue[other.next]) != over) continue;
      other.end_ms = now + (other.end_ms - now) * sharing / before;
    }
    return sharing;
  }

  void begin(Lane& lane, double now) {
    std::size_t operation = lane.queue[lane.next];
    Link over = link(operation);
    double before = slowness();
    lane.end_ms = now + length(operation) * (over == Link::none ? 1 : change_share(over, 1, now));
    if (&lane == &compute_lane()) lane.end_ms = now + (lane.end_ms - now) * before;
    lane.under_way = true;
    change_slowness(before, now);
    spans_[operation].start_ms = now;
  }

  bool begin_what_can(double now) {
    bool any = false;
    for (Lane& lane : lanes_) {
      if (!may_begin(lane) || earliest(lane.queue[lane.next]) > now) continue;
      begin(lane, now);
      any = true;
    }
    return any;
  }

  void end_what_is_due(double now) {
    for (Lane& lane : lanes_) {
      if (!lane.under_way || lane.end_ms > now) continue;
      double before = slowness();
      std::size_t operation = lane.queue[lane.next++];
      spans_[operation].end_ms = now;
      done_[operation] = true;
      lane.under_way = false;
      change_slowness(before, now);
      if (Link over = link(operation); over != Link::none) change_share(over, -1, now);
    }
  }

  double next_event(double now) const {
    double next = never;
    for (const Lane& lane : lanes_) {
      if (lane.under_way) next = std::min(next, lane.end_ms);
      if (may_begin(lane)) next = std::min(next, std::max(now, earliest(lane.queue[lane.next])));
    }
    return next;
  }

  const StepPlan& plan_;
  const OperationCosts& costs_;
  std::vector<Span> spans_;
  std::vector<bool> done_;
  std::array<Lane, lane_count> lanes_;
  std::array<int, 3> sharing_{};  // by link: transfers under way
};

}  // namespace

std::vector<Span> timeline(const StepPlan& plan, const OperationCosts& costs) { return Simulation(plan, costs).run(); }

}  // namespace ganymede::plan
