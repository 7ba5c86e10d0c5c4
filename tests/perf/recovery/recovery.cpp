#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "tests/support/kills/processes.h"
#include "tests/support/kills/watched_cell.h"
#include "tests/support/process_wait.h"
#include "tests/support/training_run.h"

/// `perf_recovery [N]`: two ranks of configs/recipes/tiny.toml; each service is killed N times (standard: 5), then the
/// whole job. A table for README.md, medians and worst cases.
namespace ganymede::test {
namespace {

using service::Kind;
using Milliseconds = std::vector<double>;

constexpr int ranks = 2;
constexpr double most_seconds = 60;  // of one wait

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Milliseconds from `began` until it holds, looked at every 0.2 ms.
double until(double began, const std::function<bool()>& holds, const char* what) {
  while (!holds()) {
    if (now_ms() - began > most_seconds * 1e3) fail("Waited {} s in vain: {}.", most_seconds, what);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return now_ms() - began;
}

std::string row(const std::string& what, Milliseconds times) {
  std::sort(times.begin(), times.end());
  if (times.empty()) return "";
  return fmt::format("| {} | {:.0f} ms | {:.0f} ms |\n", what, times[times.size() / 2], times.back());
}

std::vector<std::string> settings() {
  return {"parallel.ranks=2",
          "run.steps=1000000",
          "checkpoint.every_steps=20",
          "compute.threads=1",
          "validation.every_steps=0",
          "launch.restart_budget=100000",
          "launch.restart_window_seconds=1"};
}

class Benchmark {
 public:
  explicit Benchmark(int times) : times_(times) {}

  std::string table() {
    run_.start();
    for (int rank = 0; rank < ranks; ++rank) cells_.emplace_back(run_.folder(), rank);
    go_on(20);
    measure_steps();
    for (int i = 0; i < times_; ++i) {
      kill_worker(i % ranks);
      for (Kind kind : {Kind::optimizer, Kind::data, Kind::checkpoint}) kill_other(kind, i % ranks);
    }
    cells_.clear();
    for (int i = 0; i < times_; ++i) restart_job();
    run_.kill_everything();
    return "| kill -9 of | median | worst |\n| --- | --- | --- |\n" + row("(a step without any)", undisturbed_) +
           row("a worker: until the launcher has seen its end", seen_) +
           row("a worker: until the next step is done", step_) +
           row("an optimizer server: the longest step meanwhile", others_[0]) +
           row("a data server: the longest step meanwhile", others_[1]) +
           row("a checkpoint service: the longest step meanwhile", others_[2]) +
           row("the whole job: from its next start to the first step after the checkpoint", cold_);
  }

 private:
  std::uint64_t done() const {
    std::uint64_t step = cells_[0].committed_step();
    for (const WatchedCell& cell : cells_) step = std::min(step, cell.committed_step());
    return step;
  }
  void go_on(std::uint64_t steps) {
    std::uint64_t step = done();
    until(
        now_ms(), [&] { return done() >= step + steps; }, "steps");
  }
  void measure_steps() {
    for (int i = 0; i < 50; ++i) {
      std::uint64_t step = done();
      undisturbed_.push_back(until(
          now_ms(), [&] { return done() > step; }, "a step"));
    }
  }
  int pid_of(Kind kind, int rank) {
    int pid = 0;
    until(
        now_ms(), [&] { return (pid = find_service(run_.folder(), kind, rank)) > 0; }, "a service");
    return pid;
  }
  void kill_worker(int rank) {
    int pid = pid_of(Kind::worker, rank);
    std::uint64_t generation = cells_[0].generation();
    double began = now_ms();
    ::kill(pid, SIGKILL);
    std::uint64_t decided = std::max(cells_[0].decided_step(), cells_[1].decided_step());
    seen_.push_back(until(
        began, [&] { return cells_[0].generation() > generation; }, "a generation"));
    step_.push_back(until(
        began, [&] { return done() > decided; }, "a step"));
    go_on(10);
  }
  void kill_other(Kind kind, int rank) {
    int pid = pid_of(kind, rank);
    std::uint64_t step = done();
    double longest = 0;
    ::kill(pid, SIGKILL);
    for (int i = 1; i <= 30; ++i)
      longest =
          std::max(longest, until(
                                now_ms(), [&] { return done() >= step + static_cast<std::uint64_t>(i); }, "a step"));
    others_[static_cast<std::size_t>(kind) - 1].push_back(longest);
    pid_of(kind, rank);
    go_on(10);
  }
  void restart_job() {
    run_.kill_everything();
    double began = now_ms();
    run_.start();
    WatchedCell first(run_.folder(), 0);
    std::uint64_t loaded = first.load_step();
    cold_.push_back(until(
        began, [&] { return first.committed_step() > loaded; }, "a step"));
    run_.wait_for_step(loaded + 25, most_seconds);
  }

  int times_;
  TrainingRun run_{settings()};
  std::vector<WatchedCell> cells_;
  Milliseconds undisturbed_, seen_, step_, others_[3], cold_;
};

}  // namespace
}  // namespace ganymede::test

int main(int argc, char** argv) {
  int times = 5;
  if (argc > 1) std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), times);
  try {
    fmt::print("{}", ganymede::test::Benchmark(std::max(1, times)).table());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
