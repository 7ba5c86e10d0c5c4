#include "tests/multiprocess/swap/swapped_run.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <future>

#include "common/base/error.h"
#include "tests/support/process_wait.h"
#include "tests/support/short_run.h"

namespace ganymede::test {
namespace {

/// Nothing while no launcher answers.
nlohmann::json status_or_nothing(const TrainingRun& run) {
  try {
    return run.status();
  } catch (const std::exception&) {
    return nlohmann::json::object();
  }
}

int worker_that_starts(const TrainingRun& run) {
  int pid = 0;
  auto there = [&] {
    auto found = processes_with("ganymede-worker" + std::string(1, '\0') + "--run" + std::string(1, '\0') +
                                run.folder() + std::string(1, '\0') + "--rank" + std::string(1, '\0') + "0");
    if (!found.empty()) pid = found.front();
    return pid != 0;
  };
  wait_until(there, 60, "the worker of rank 0");
  return pid;
}

}  // namespace

std::vector<std::string> swap_settings(int ranks, int steps) {
  return short_run(ranks, steps,
                   {"optimizer.schedule=constant", "optimizer.adamw.beta2=0.95", "launch.restart_budget=100000",
                    // begin_swap_at holds a worker
                    "launch.stall_seconds=600"});
}

TrainingRun::Answer swap(const TrainingRun& run, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"ctl", run.folder(), "swap-optimizer"});
  return run.ganymede(arguments, 120);
}

int standby_of(const std::string& folder, int rank, int epoch) {
  std::string zero(1, '\0');
  auto found = processes_with(folder + zero + "--rank" + zero + std::to_string(rank) + zero + "--epoch" + zero +
                              std::to_string(epoch) + zero);
  return found.empty() ? 0 : found.front();
}

void kill_standbys(const std::string& folder, int rank, const std::function<std::string()>& output) {
  int last = 0;
  auto another = [&] {
    if (output().find("was refused by rank") != std::string::npos) return true;
    int pid = standby_of(folder, rank);
    if (pid == 0 || pid == last) return false;
    ::kill(pid, SIGKILL);
    last = pid;
    return true;
  };
  for (int i = 0; i < 2; ++i) wait_until(another, 60, "a standby server");
}

std::uint64_t first_step_of_epoch(const TrainingRun& run, int epoch) {
  for (const auto& line : run.metrics())
    if (line["state_epoch"] == epoch) return line["step"];
  return 0;
}

void begin_swap_at(TrainingRun& run, int begin, const std::vector<std::string>& arguments) {
  ASSERT_EQ(run.train({"--steps", std::to_string(begin)}, 240), 0) << run.output();
  run.start();
  int worker = worker_that_starts(run);
  ::kill(worker, SIGSTOP);
  auto ordered = std::async(std::launch::async, [&] {
    auto with_wait = arguments;
    with_wait.insert(with_wait.end(), {"--wait", "0"});
    wait_until([&] { return status_or_nothing(run).contains("optimizer"); }, 60, "the launcher");
    return swap(run, with_wait);
  });
  auto answer = ordered.get();
  EXPECT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_EQ(answer.output.find("ordered: "), 0u) << answer.output;
  auto offered = [&] {
    auto status = status_or_nothing(run);
    return status.contains("swap") && status["swap"].get<std::string>().find("updates followed") != std::string::npos;
  };
  wait_until(offered, 60, "the offer of the swap");
  ASSERT_EQ(run.last_step(), static_cast<std::uint64_t>(begin));
  ::kill(worker, SIGCONT);
}

}  // namespace ganymede::test
