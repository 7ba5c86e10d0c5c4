#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "common/base/deadline.h"
#include "services/worker/engine/executor/executor.h"
#include "tests/conformance/executor/plans.h"

/// What only threads can do.
namespace ganymede::worker {
namespace {

using plan::OperationKind;
using test::all;
using test::real_plan;
using namespace std::chrono_literals;

TEST(ThreadExecutor, RunsTheOperationsOfALaneInListOrderOnOneThread) {
  plan::StepPlan plan = real_plan();
  std::mutex mutex;
  std::map<plan::Lane, std::vector<int>> order;
  std::map<plan::Lane, std::set<std::thread::id>> threads;
  ThreadExecutor executor({});
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

TEST(ThreadExecutor, LanesRunAtTheSameTime) {
  plan::StepPlan plan;
  plan.operations.push_back({.kind = OperationKind::forward, .lane = plan::Lane::compute});
  plan.operations.push_back({.kind = OperationKind::gather, .lane = plan::Lane::gather});
  std::atomic<int> inside{0};
  ThreadExecutor executor({});
  executor.run(plan, all([&](const plan::Operation&, int) {
                 ++inside;
                 Deadline deadline = Deadline::after(20s);
                 while (inside < 2 && !deadline.passed()) std::this_thread::yield();
                 EXPECT_EQ(inside, 2);
               }));
}

TEST(ThreadExecutor, StopEndsOperationsThatWaitOutside) {
  plan::StepPlan plan = real_plan();
  std::atomic<bool> aborted{false};
  ThreadExecutor executor({.stop = [&] { aborted = true; }});
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

TEST(ThreadExecutor, CancelEndsARunThatWaitsAndEveryLaterOne) {
  plan::StepPlan plan = real_plan();
  std::atomic<bool> waiting{false}, aborted{false};
  ThreadExecutor executor({.stop = [&] { aborted = true; }});
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

void run_with_a_lane_that_stays() {
  plan::StepPlan plan = real_plan();
  std::atomic<bool> gathering{false};
  ThreadExecutor executor({.grace = 50ms});
  executor.run(plan, all([&](const plan::Operation& operation, int) {
                 if (operation.kind == OperationKind::gather) {
                   gathering = true;
                   std::this_thread::sleep_for(60s);
                 }
                 while (!gathering) std::this_thread::yield();
                 if (operation.kind == OperationKind::wait_batch) throw std::runtime_error("no batch");
               }));
}

TEST(ThreadExecutor, ALaneThatDoesNotEndEndsTheProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(run_with_a_lane_that_stays(), "a lane did not end within 0.05 s after: wait_batch: no batch");
}

TEST(ThreadExecutor, LaneStartIsCalledOnceALaneInItsThread) {
  std::mutex mutex;
  std::map<plan::Lane, std::thread::id> started;
  plan::StepPlan plan = real_plan();
  {
    ThreadExecutor executor({.lane_started = [&](plan::Lane lane) {
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

TEST(ThreadExecutor, OneAtATimeRunsInListOrderWithNothingBeside) {
  plan::StepPlan plan = real_plan();
  ThreadExecutor executor({.one_at_a_time = true});
  std::atomic<int> inside{0}, together{0};
  std::vector<int> order;
  auto report = executor.run(plan, all([&](const plan::Operation&, int index) {
                               together += inside++;
                               order.push_back(index);
                               --inside;
                             }));
  EXPECT_EQ(together, 0);
  ASSERT_EQ(order.size(), plan.operations.size());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(report.peak_bytes, plan.peak_bytes);
}

TEST(ThreadExecutor, OneAtATimeEndsWhenAnOperationFails) {
  plan::StepPlan plan = real_plan();
  ThreadExecutor executor({.one_at_a_time = true});
  std::atomic<int> last{-1};
  EXPECT_THROW(executor.run(plan, all([&](const plan::Operation&, int index) {
                              last = index;
                              if (index == 5) throw std::runtime_error("no");
                            })),
               plan::OperationFailed);
  EXPECT_EQ(last, 5);
}

TEST(ThreadExecutor, WaitsForTheWorldOutsideAreNotBusyTime) {
  plan::StepPlan plan = real_plan();
  ThreadExecutor executor({.take_outside_wait = [] { return plan::OutsideWait{1000, 500}; }});
  plan::ExecutorReport report = executor.run(plan, {});
  for (const plan::Span& span : report.spans) {
    EXPECT_EQ(span.outside.words_ms, 1000);
    EXPECT_EQ(span.outside.collectives_ms, 500);
  }
  EXPECT_LT(report.lanes[0].busy_ms, 0);  // nothing really ran that long
  EXPECT_GE(report.lanes[0].wait_ms, 1500);
}

}  // namespace
}  // namespace ganymede::worker
