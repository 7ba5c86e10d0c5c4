#include "common/plan/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/error.h"
#include "common/plan/simulated/executor.h"
#include "common/plan/timeline.h"
#include "services/worker/engine/executor/executor.h"
#include "tests/conformance/executor/plans.h"

/// What every executor of step plans must do, tested with operations that compute nothing.
namespace ganymede {
namespace {

using plan::Operation;
using plan::OperationKind;
using plan::StepPlan;
using test::all;
using test::real_plan;
using namespace std::chrono_literals;

struct Kind {
  const char* name;
  /// `seed` makes operations last differently in each round.
  std::unique_ptr<plan::Executor> (*make)(const StepPlan& plan, unsigned seed);
};

std::unique_ptr<plan::Executor> threads(const StepPlan&, unsigned) {
  return std::make_unique<worker::ThreadExecutor>(worker::ExecutorHooks{});
}

std::unique_ptr<plan::Executor> simulated(const StepPlan& plan, unsigned seed) {
  std::vector<double> ms;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    ms.push_back(seed % 3 == 0 ? 0 : (seed >> 16) % 100);
  }
  return std::make_unique<plan::SimulatedExecutor>(plan::OperationCosts{ms});
}

class EveryExecutor : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<plan::Executor> make(const StepPlan& plan, unsigned seed = 1) { return GetParam().make(plan, seed); }
};

TEST_P(EveryExecutor, StartsAnOperationOnlyWhenWhatItWaitsForIsComplete) {
  StepPlan plan = real_plan();
  for (unsigned round = 0; round < 30; ++round) {
    auto executor = make(plan, round);
    std::vector<std::atomic<bool>> complete(plan.operations.size());
    std::atomic<int> early{0};
    auto report = executor->run(plan, all([&](const Operation& operation, int index) {
                                  for (int d : operation.after) early += complete[d] ? 0 : 1;
                                  if ((index * 7 + static_cast<int>(round)) % 5 == 0) std::this_thread::yield();
                                  complete[index] = true;
                                }));
    ASSERT_EQ(early, 0);
    for (auto& flag : complete) ASSERT_TRUE(flag);
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      for (int d : plan.operations[i].after) ASSERT_LE(report.spans[d].end_ms, report.spans[i].start_ms);
    }
  }
}

TEST_P(EveryExecutor, RunsTheOperationsOfALaneInListOrderOneAtATime) {
  StepPlan plan = real_plan();
  std::mutex mutex;
  std::array<std::vector<int>, plan::lane_count> order;
  auto report = make(plan)->run(plan, all([&](const Operation& operation, int index) {
                                  std::lock_guard guard(mutex);
                                  order[static_cast<std::size_t>(operation.lane)].push_back(index);
                                }));
  std::size_t sum = 0;
  for (const auto& list : order) {
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
    for (std::size_t i = 1; i < list.size(); ++i) {
      EXPECT_LE(report.spans[list[i - 1]].end_ms, report.spans[list[i]].start_ms);
    }
    sum += list.size();
  }
  EXPECT_EQ(sum, plan.operations.size());
}

TEST_P(EveryExecutor, BuffersThatShareBytesAreNeverInUseAtTheSameTime) {
  for (unsigned round = 0; round < 10; ++round) {
    StepPlan plan = real_plan(2, 0.5);
    auto report = make(plan, round)->run(plan, all([&](const Operation&, int index) {
                                           if (index % 4 == static_cast<int>(round % 4)) std::this_thread::yield();
                                         }));
    auto taken = plan::buffer_times(plan, report.spans);
    for (std::size_t a = 0; a < plan.buffers.size(); ++a) {
      for (std::size_t b = a + 1; b < plan.buffers.size(); ++b) {
        const plan::Buffer &x = plan.buffers[a], &y = plan.buffers[b];
        bool same_memory = (x.kind == plan::BufferKind::arena) == (y.kind == plan::BufferKind::arena);
        bool share = same_memory && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
        if (!share) continue;
        EXPECT_TRUE(taken[a].to_ms <= taken[b].from_ms || taken[b].to_ms <= taken[a].from_ms)
            << x.name << " and " << y.name;
      }
    }
  }
}

TEST_P(EveryExecutor, MeasuredPeakIsThePredictedOneToTheByteHoweverLanesInterleave) {
  for (double offload : {0.0, 0.5, 1.0}) {
    StepPlan plan = real_plan(2, offload);
    for (unsigned round = 0; round < 20; ++round) {
      auto report = make(plan, round)->run(plan, all([&](const Operation& operation, int index) {
                                             bool slow =
                                                 static_cast<unsigned>(operation.lane) == round % plan::lane_count;
                                             if (slow && index % 3 == 0) std::this_thread::sleep_for(200us);
                                           }));
      ASSERT_EQ(report.peak_bytes, plan.peak_bytes);
    }
  }
}

TEST_P(EveryExecutor, AThrowingOperationEndsTheStepAndItsErrorNamesIt) {
  StepPlan plan = real_plan();
  auto executor = make(plan);
  std::atomic<int> inside{0};
  plan::OperationTable table = all([&](const Operation& operation, int) {
    ++inside;
    struct Leave {
      std::atomic<int>& inside;
      ~Leave() { --inside; }
    } leave{inside};
    if (operation.kind == OperationKind::backward && operation.layer == 1) fail("the device is on fire");
  });
  try {
    executor->run(plan, table);
    FAIL() << "did not throw";
  } catch (const plan::OperationFailed& e) {
    EXPECT_EQ(inside, 0) << "something is still inside an operation";
    EXPECT_EQ(std::string(e.what()), "backward layer 1 row 0: the device is on fire");
    EXPECT_THROW(std::rethrow_exception(e.cause()), Error);
  }
  EXPECT_THROW(executor->run(plan, {}), plan::OperationFailed) << "an executor that failed does not run again";
}

TEST_P(EveryExecutor, NamesAnOperationThatThrowsWhatIsNoException) {
  StepPlan plan = real_plan();
  try {
    make(plan)->run(plan, all([&](const Operation& operation, int) {
                      if (operation.kind == OperationKind::vote) throw 7;
                    }));
    FAIL() << "did not throw";
  } catch (const plan::OperationFailed& e) {
    EXPECT_EQ(std::string(e.what()), "vote: unknown exception");
  }
}

TEST_P(EveryExecutor, NothingThatWaitsForAFailedOperationRuns) {
  StepPlan plan = real_plan();
  for (int victim = 0; victim < static_cast<int>(plan.operations.size()); victim += 7) {
    std::vector<std::atomic<bool>> ran(plan.operations.size());
    EXPECT_THROW(make(plan)->run(plan, all([&](const Operation&, int index) {
                                   ran[index] = true;
                                   if (index == victim) throw std::runtime_error("no");
                                 })),
                 plan::OperationFailed);
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      for (int d : plan.operations[i].after) {
        EXPECT_FALSE(d == victim && ran[i]) << i << " ran though " << victim << " failed";
      }
    }
  }
}

TEST_P(EveryExecutor, CancelEndsARunAndEveryLaterOne) {
  StepPlan plan = real_plan();
  auto executor = make(plan);
  std::atomic<bool> ran_after{false};
  plan::OperationTable table = all([&](const Operation& operation, int) {
    if (operation.kind == OperationKind::decide) ran_after = true;
    if (operation.kind == OperationKind::vote) executor->cancel("generation 2 has begun");
  });
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      executor->run(plan, table);
      FAIL() << "did not throw";
    } catch (const plan::Cancelled& e) {
      EXPECT_STREQ(e.what(), "generation 2 has begun");
    }
  }
  EXPECT_FALSE(ran_after);
}

TEST_P(EveryExecutor, KindsWithoutAFunctionAreBookkeeping) {
  StepPlan plan = real_plan();
  EXPECT_EQ(make(plan)->run(plan, {}).peak_bytes, plan.peak_bytes);
}

TEST_P(EveryExecutor, AnEmptyPlanEndsAtOnce) {
  StepPlan plan;
  auto report = make(plan)->run(plan, {});
  EXPECT_EQ(report.peak_bytes, 0);
  EXPECT_TRUE(report.spans.empty());
}

INSTANTIATE_TEST_SUITE_P(Executors, EveryExecutor,
                         testing::Values(Kind{"Threads", threads}, Kind{"Simulated", simulated}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace ganymede
