#include "services/worker/engine/executor/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "services/worker/engine/executor/pool_meter.h"

/// What every executor of step plans must do, tested with operations that compute nothing.
namespace ganymede::worker {
namespace {

using plan::OperationKind;
using namespace std::chrono_literals;

plan::StepPlan real_plan(int ranks = 2, double offload = 0.5) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.model.layers = 3;
  config.data.rows_per_step = 4;
  config.offload.fraction = offload;
  return plan::build(config, placement::build(config, 0), plan::PlanKind::train);
}

OperationTable all(const OperationFunction& function) {
  OperationTable table;
  table.functions.fill(function);
  return table;
}

TEST(Executor, StartsAnOperationOnlyWhenWhatItWaitsForIsComplete) {
  plan::StepPlan plan = real_plan();
  Executor executor({});
  for (int round = 0; round < 50; ++round) {
    std::vector<std::atomic<bool>> complete(plan.operations.size());
    std::atomic<int> early{0};
    executor.run(plan, all([&](const plan::Operation& operation, int index) {
                   for (int d : operation.after) early += complete[d] ? 0 : 1;
                   if ((index * 7 + round) % 5 == 0) std::this_thread::yield();
                   complete[index] = true;
                 }));
    ASSERT_EQ(early, 0);
    for (auto& flag : complete) ASSERT_TRUE(flag);
  }
}

TEST(Executor, RunsTheOperationsOfALaneInListOrderOnOneThread) {
  plan::StepPlan plan = real_plan();
  std::mutex mutex;
  std::map<plan::Lane, std::vector<int>> order;
  std::map<plan::Lane, std::set<std::thread::id>> threads;
  Executor executor({});
  executor.run(plan, all([&](const plan::Operation& operation, int index) {
                 std::lock_guard guard(mutex);
                 order[operation.lane].push_back(index);
                 threads[operation.lane].insert(std::this_thread::get_id());
               }));
  std::set<std::thread::id> together;
  for (auto& [lane, list] : order) {
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end())) << plan::name(lane);
    EXPECT_EQ(threads[lane].size(), 1u);
    together.merge(threads[lane]);
  }
  EXPECT_EQ(together.size(), order.size());
}

TEST(Executor, LanesRunAtTheSameTime) {
  plan::StepPlan plan;
  plan.operations.push_back({.kind = OperationKind::forward, .lane = plan::Lane::compute});
  plan.operations.push_back({.kind = OperationKind::gather, .lane = plan::Lane::gather});
  std::atomic<int> inside{0};
  Executor executor({});
  executor.run(plan, all([&](const plan::Operation&, int) {
                 ++inside;
                 Deadline deadline = Deadline::after(20s);
                 while (inside < 2 && !deadline.passed()) std::this_thread::yield();
                 EXPECT_EQ(inside, 2);
               }));
}

TEST(Executor, MeasuredPeakIsThePredictedOneToTheByteHoweverLanesInterleave) {
  for (double offload : {0.0, 0.5, 1.0}) {
    plan::StepPlan plan = real_plan(2, offload);
    Executor executor({});
    for (int round = 0; round < 30; ++round) {
      ExecutorReport report =
          executor.run(plan, all([&](const plan::Operation& operation, int index) {
                         if (static_cast<int>(operation.lane) == round % plan::lane_count && index % 3 == 0) {
                           std::this_thread::sleep_for(200us);
                         }
                       }));
      ASSERT_EQ(report.peak_bytes, plan.peak_bytes);
    }
  }
}

TEST(Executor, AThrowingOperationEndsTheStepAndItsErrorNamesIt) {
  plan::StepPlan plan = real_plan();
  std::atomic<int> inside{0}, stops{0};
  Executor executor({.stop = [&] { ++stops; }});
  OperationTable table = all([&](const plan::Operation& operation, int) {
    ++inside;
    struct Leave {
      std::atomic<int>& inside;
      ~Leave() { --inside; }
    } leave{inside};
    if (operation.kind == OperationKind::backward && operation.layer == 1) fail("the device is on fire");
  });
  try {
    executor.run(plan, table);
    FAIL() << "did not throw";
  } catch (const OperationFailed& e) {
    EXPECT_EQ(inside, 0) << "a lane is still inside an operation";
    EXPECT_EQ(std::string(e.what()), "backward layer 1 row 0: the device is on fire");
    EXPECT_THROW(std::rethrow_exception(e.cause()), Error);
  }
  EXPECT_EQ(stops, 1);
  EXPECT_THROW(executor.run(plan, table), OperationFailed) << "an executor that failed does not run again";
}

TEST(Executor, NothingThatWaitsForAFailedOperationRuns) {
  plan::StepPlan plan = real_plan();
  for (int victim = 0; victim < static_cast<int>(plan.operations.size()); victim += 7) {
    std::vector<std::atomic<bool>> ran(plan.operations.size());
    Executor executor({});
    EXPECT_THROW(executor.run(plan, all([&](const plan::Operation&, int index) {
                                ran[index] = true;
                                if (index == victim) throw std::runtime_error("no");
                              })),
                 OperationFailed);
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      for (int d : plan.operations[i].after) {
        EXPECT_FALSE(d == victim && ran[i]) << i << " ran though " << victim << " failed";
      }
    }
  }
}

TEST(Executor, StopEndsOperationsThatWaitOutside) {
  plan::StepPlan plan = real_plan();
  std::atomic<bool> aborted{false};
  Executor executor({.stop = [&] { aborted = true; }});
  OperationTable table = all([&](const plan::Operation& operation, int) {
    if (operation.kind == OperationKind::gather && operation.layer == 1) {  // like a collective without its peer
      Deadline deadline = Deadline::after(20s);
      while (!aborted && !deadline.passed()) std::this_thread::yield();
      if (aborted) throw std::runtime_error("aborted");
    }
    if (operation.kind == OperationKind::forward && operation.layer == 0) throw std::logic_error("first");
  });
  try {
    executor.run(plan, table);
    FAIL() << "did not throw";
  } catch (const OperationFailed& e) {
    EXPECT_THROW(std::rethrow_exception(e.cause()), std::logic_error);
  }
}

TEST(Executor, CancelEndsARunThatWaitsAndEveryLaterOne) {
  plan::StepPlan plan = real_plan();
  std::atomic<bool> waiting{false}, aborted{false};
  Executor executor({.stop = [&] { aborted = true; }});
  OperationTable table = all([&](const plan::Operation& operation, int) {
    if (operation.kind != OperationKind::vote) return;
    waiting = true;
    Deadline deadline = Deadline::after(20s);
    while (!aborted && !deadline.passed()) std::this_thread::yield();
    throw std::runtime_error("aborted");
  });
  std::thread person([&] {
    while (!waiting) std::this_thread::yield();
    executor.cancel("generation 2 has begun");
  });
  try {
    executor.run(plan, table);
    FAIL() << "did not throw";
  } catch (const Cancelled& e) {
    EXPECT_STREQ(e.what(), "generation 2 has begun");
  }
  person.join();
  EXPECT_THROW(executor.run(plan, table), Cancelled);
}

TEST(Executor, ALaneThatDoesNotEndEndsTheProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        plan::StepPlan plan = real_plan();
        Executor executor({.grace = 50ms});
        executor.run(plan, all([&](const plan::Operation& operation, int) {
                       if (operation.kind == OperationKind::gather) std::this_thread::sleep_for(60s);
                       if (operation.kind == OperationKind::wait_batch) throw std::runtime_error("no batch");
                     }));
      },
      "a lane did not end within 0.05 s after: wait_batch: no batch");
}

TEST(Executor, KindsWithoutAFunctionAreBookkeeping) {
  plan::StepPlan plan = real_plan();
  Executor executor({});
  EXPECT_EQ(executor.run(plan, OperationTable{}).peak_bytes, plan.peak_bytes);
}

TEST(Executor, LaneStartIsCalledOnceALaneInItsThread) {
  std::mutex mutex;
  std::map<plan::Lane, std::thread::id> started;
  plan::StepPlan plan = real_plan();
  {
    Executor executor({.lane_started = [&](plan::Lane lane) {
      std::lock_guard guard(mutex);
      EXPECT_TRUE(started.emplace(lane, std::this_thread::get_id()).second);
    }});
    OperationTable table = all([&](const plan::Operation& operation, int) {
      std::lock_guard guard(mutex);
      EXPECT_EQ(started.at(operation.lane), std::this_thread::get_id());
    });
    executor.run(plan, table);
    executor.run(plan, table);
  }
  EXPECT_EQ(started.size(), static_cast<std::size_t>(plan::lane_count));
}

}  // namespace
}  // namespace ganymede::worker
