#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "services/worker/engine/process_settings.h"
#include "tests/unit/engine/test_world.h"

// Two teams of OpenMP threads that are together more than the cores slow each other down by a quarter: only the compute
// lane may have one.

namespace ganymede::worker {
namespace {

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// A team ends with its first thread, but that thread does not wait until the system has forgotten the others.
std::ptrdiff_t threads_when_there_are(std::ptrdiff_t expected) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (threads_of_this_process() != expected && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return threads_of_this_process();
}

class ThreadTeams : public testing::Test {
 protected:
  ~ThreadTeams() override { at::set_num_threads(before_); }
  int before_ = at::get_num_threads();
};

TEST_F(ThreadTeams, BelongToThreadsThatCompute) {
  at::set_num_threads(3);
  int computing = 0, other = 0;
  std::thread([&] {
    set_up_thread(true);
    computing = at::get_num_threads();
  }).join();
  std::thread([&] {
    set_up_thread(false);
    other = at::get_num_threads();
  }).join();
  EXPECT_EQ(computing, 3);
  EXPECT_EQ(other, 1);
}

TEST_F(ThreadTeams, TheMeasurementOfThePeakLeavesNone) {
  at::set_num_threads(3);
  std::ptrdiff_t before = threads_of_this_process();
  EXPECT_GT(measure_peak_flops(config::Dtype::fp32), 0);
  EXPECT_EQ(threads_when_there_are(before), before);
}

TEST_F(ThreadTeams, AStepNeedsOne) {
  config::Config config = tiny_config();
  config.parallel.ranks = config.parallel.expert_group = 1;
  std::ptrdiff_t before = threads_of_this_process();
  auto threads_after_a_step = [&](int threads) {
    at::set_num_threads(threads);
    EXPECT_EQ(threads_when_there_are(before), before);
    TestWorld world(config);
    set_up_thread(false);  // as the worker's first thread, which has built the engine
    world.step(1);
    return threads_of_this_process() - before;
  };
  EXPECT_EQ(threads_after_a_step(3), threads_after_a_step(1) + 2);
}

}  // namespace
}  // namespace ganymede::worker
