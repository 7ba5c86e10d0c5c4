#include "common/service/planned_times.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/service/fake_node.h"

namespace ganymede::service {
namespace {

using std::chrono::milliseconds;

TEST(PlannedTimes, LongestTimeCountsAndFades) {
  PlannedTimes times;
  EXPECT_EQ(times.of(3).seconds, 0) << "not known";
  times.took(3, {2, 4});
  times.took(3, {1, 5});
  EXPECT_DOUBLE_EQ(times.of(3).seconds, 1.8);
  EXPECT_DOUBLE_EQ(times.of(3).cpu_seconds, 5);
  for (int i = 0; i < 20; ++i) times.took(3, {1, 1});
  EXPECT_DOUBLE_EQ(times.of(3).seconds, 1);
  EXPECT_EQ(times.of(4).seconds, 0) << "each by itself";
}

TEST(Stopwatch, StandsWhileSomebodyIsWaitedFor) {
  Stopwatch watch;
  watch.pause();
  watch.pause();
  EXPECT_TRUE(watch.paused());
  std::this_thread::sleep_for(milliseconds(1000));
  watch.go_on();
  EXPECT_TRUE(watch.paused());
  watch.go_on();
  EXPECT_FALSE(watch.paused());
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_GE(watch.taken().seconds, 0.02);
  EXPECT_LT(watch.taken().seconds, 1);
}

class RepeatedWorkOfAService : public testing::Test {
 protected:
  RepeatedWorkOfAService() { node_.make_segments(1); }
  void run(const std::function<void(Context&, const step_protocol::ServiceWords&)>& body) {
    node_.run(Kind::optimizer, 1,
              [&](Context& context) { body(context, context.control().services[static_cast<int>(Kind::optimizer)]); });
  }
  FakeNode node_;
};

TEST_F(RepeatedWorkOfAService, HasAPlannedTimeOnceItWasDone) {
  run([](Context& context, const auto& words) {
    RepeatedWork work(context);
    work.begin(1, 5, "applying");
    EXPECT_EQ(words.planned_ns.load(), 0u) << "the first time";
    std::this_thread::sleep_for(milliseconds(30));
    work.begin(1, 6, "applying");
    EXPECT_EQ(words.planned_ns.load(), 0u) << "of another bucket";
    work.begin(1, 5, "applying");
    EXPECT_GE(words.planned_ns.load(), 30'000'000u);
    context.at(0, 0, "waiting");
    EXPECT_EQ(words.planned_ns.load(), 0u);
    work.begin(1, 5, "applying");
    EXPECT_GT(words.planned_ns.load(), 0u);
  });
  run([](Context&, const auto& words) { EXPECT_EQ(words.planned_ns.load(), 0u) << "of the process before"; });
}

TEST_F(RepeatedWorkOfAService, ThatWaitsForAnotherProcessIsNotMeasured) {
  run([](Context& context, const auto& words) {
    RepeatedWork work(context);
    work.begin(1, 5, "applying");
    work.end();
    work.begin(1, 5, "applying");
    std::uint64_t planned = words.planned_ns.load(), progress = words.progress.load();
    EXPECT_GT(planned, 0u);
    work.disturb(4, 0, "waiting for a reader");
    work.disturb(4, 0, "waiting for a reader");
    EXPECT_EQ(words.progress.load(), progress + 1) << "said once";
    EXPECT_EQ(words.planned_ns.load(), 0u);
    EXPECT_EQ(context.control().services[static_cast<int>(Kind::optimizer)].operation.load(), 4u);
    std::this_thread::sleep_for(milliseconds(1000));
    work.begin(1, 5, "applying");
    EXPECT_LT(words.planned_ns.load(), 1'000'000'000u);
  });
}

}  // namespace
}  // namespace ganymede::service
