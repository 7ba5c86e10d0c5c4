#include "tests/support/kills/strike.h"

#include <signal.h>

#include <chrono>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "tests/support/kills/processes.h"
#include "tests/support/process_wait.h"

namespace ganymede::test {
namespace {

using std::chrono::microseconds;

constexpr double seconds_a_target = 60;
constexpr double seconds_without_a_look = 0.05;
constexpr double seconds_of_watching = 4;  // then in small steps
constexpr double seconds_to_stop = 5;
constexpr double seconds_of_a_start = 8;  // in which a process that was just started is where it is only then

/// False when the process is gone.
bool stop(int pid) {
  if (::kill(pid, SIGSTOP) != 0) return false;
  for (Deadline deadline = Deadline::after_seconds(seconds_to_stop); !deadline.passed();)
    if (all_threads_stopped(pid)) return true;
  return false;
}

/// One process on its way to the target.
class Hunt {
 public:
  Hunt(int pid, const WatchedCell& cell, const KillTarget& target, const Deadline& deadline, int& looks)
      : pid_(pid), cell_(cell), target_(target), deadline_(deadline), looks_(looks) {}

  /// Whether it was hit. False at the deadline, and when the process has ended by itself.
  bool hit() {
    Deadline watching = Deadline::after_seconds(seconds_of_watching);
    while (!deadline_.passed()) {
      bool small_steps = watching.passed();
      if (small_steps ? !small_step() : !await()) return false;
      if (target_.holds(cell_)) return ::kill(pid_, SIGKILL) == 0;
      ::kill(pid_, SIGCONT);
    }
    return false;
  }

 private:
  /// Stopped as soon as it seems to be there, or after a while. False when it is gone.
  bool await() {
    for (Deadline rest = Deadline::after_seconds(seconds_without_a_look); !rest.passed() && !watch();) {
      if (::kill(pid_, 0) != 0) return false;
      std::this_thread::sleep_for(microseconds(100));
    }
    ++looks_;
    return stop(pid_);
  }
  /// Without a pause, for a moment: some operations take a few microseconds.
  bool watch() const {
    for (Deadline moment = Deadline::after(microseconds(300)); !moment.passed();)
      for (int i = 0; i < 50; ++i)
        if (target_.holds(cell_)) return true;
    return false;
  }
  /// A moment on.
  bool small_step() {
    std::this_thread::sleep_for(microseconds(looks_ % 40));
    ++looks_;
    return stop(pid_);
  }

  int pid_;
  const WatchedCell& cell_;
  const KillTarget& target_;
  const Deadline& deadline_;
  int& looks_;
};

int await_service(const std::string& run, const KillTarget& target, int rank) {
  int pid = 0;
  wait_until([&] { return (pid = find_service(run, target.kind, rank)) > 0; }, 30,
             fmt::format("the {} of rank {}", service::name(target.kind), rank));
  return pid;
}

/// The process that takes the place of `pid`, which is killed.
int replaced(const std::string& run, const KillTarget& target, int rank, int pid) {
  ::kill(pid, SIGKILL);
  wait_until([&] { return find_service(run, target.kind, rank) != pid; }, 10, "its end");
  return await_service(run, target, rank);
}

void await_steps(const TrainingRun& run, const WatchedCell& cell, std::uint64_t step, const std::string& after) {
  try {
    wait_until([&] { return cell.committed_step() >= step; }, 60,
               fmt::format("step {} after the kill in {}", step, after));
  } catch (const Error& error) {
    fail("{} The run printed:\n{}", error.what(), run.output());
  }
}

}  // namespace

Strike strike(const std::string& run, const WatchedCell& cell, const KillTarget& target, double seconds) {
  Strike result;
  Attention attention;
  Deadline deadline = Deadline::after_seconds(seconds * patience);
  while (!result.hit && !deadline.passed()) {
    result.pid = await_service(run, target, cell.rank());
    if (target.while_starting) result.pid = replaced(run, target, cell.rank(), result.pid);
    Deadline until = target.while_starting ? Deadline::after_seconds(seconds_of_a_start) : deadline;
    result.hit = Hunt(result.pid, cell, target, until, result.looks).hit();
  }
  return result;
}

std::vector<std::string> strike_all(const TrainingRun& run, const std::vector<WatchedCell>& cells,
                                    const std::vector<KillTarget>& targets) {
  std::vector<std::string> missed;
  std::size_t turn = 0;
  for (const KillTarget& target : targets) {
    const WatchedCell& cell = cells[target.first_rank_alone ? 0 : turn++ % cells.size()];
    std::string name = fmt::format("{} of rank {}: {}", service::name(target.kind), cell.rank(), target.name);
    Strike result = strike(run.folder(), cell, target, seconds_a_target);
    fmt::print("{:<60} {} ({} looks), step {}\n", name, result.hit ? "killed there" : "NEVER HIT", result.looks,
               cell.decided_step() + 1);
    std::fflush(stdout);
    if (!result.hit) missed.push_back(name);
    await_steps(run, cell, cell.committed_step() + 2, name);
  }
  return missed;
}

}  // namespace ganymede::test
