#include "services/worker/engine/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "common/base/error.h"
#include "common/wire/bucket_form.h"
#include "tests/unit/engine/on_ranks.h"
#include "tests/unit/engine/test_world.h"

/// check.replay_every: a step is computed twice, and a rank that has other bits the second time is named.
namespace ganymede::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Replay, ChangesNoBit) {
  struct Shape {
    int ranks, expert_group, replicas;
  };
  for (auto [ranks, expert_group, replicas] : {Shape{1, 1, 1}, Shape{3, 1, 1}, Shape{4, 2, 2}, Shape{2, 1, 2}}) {
    config::Config config = world(ranks, expert_group, replicas);
    config.offload.fraction = 0.5;
    config.micro_batch.rows = 1;
    TestWorld once(config);
    config.check.replay_every = 2;
    TestWorld twice(config);
    for (std::uint64_t step = 1; step <= 4; ++step) {
      StepResult expected = once.step(step), found = twice.step(step);
      EXPECT_EQ(found.record.checksum, expected.record.checksum) << ranks << " ranks, step " << step;
      EXPECT_EQ(found.replay_ms > 0, step % 2 == 0);
      EXPECT_EQ(expected.replay_ms, 0);
      EXPECT_EQ(found.measured_peak, found.predicted_peak);
    }
    EXPECT_EQ(twice.parameters(), once.parameters());
  }
}

/// What the ranks say of step 1 of two ranks, where `err` has changed the memory of rank 1 between its two passes: the
/// first that it says to all is that it has done the first one.
std::vector<std::string> faults(const config::Config& config, const std::function<void(TestCell&)>& err) {
  TestWorld two(config);
  std::atomic<bool> erred = false;
  two.post().observed = [&](const ThreadPost::Key& key) {
    if (std::get<0>(key) == control_name && std::get<1>(key) == 1 && !erred.exchange(true)) err(two.cell(1));
  };
  std::vector<std::string> texts;
  for (const std::exception_ptr& fault : on_ranks(2, [&](int rank) {
         two.cell(rank).serve(1);
         two.engine(rank).train(1);
       })) {
    try {
      if (fault) std::rethrow_exception(fault);
      texts.push_back("nothing");
    } catch (const std::exception& error) {
      texts.push_back(error.what());
    }
  }
  for (int rank : {0, 1}) EXPECT_EQ(two.cell(rank).control().block->decided_step.load(), 0u) << "nothing is decided";
  return texts;
}

config::Config checked() {
  config::Config config = world(2);
  config.check.replay_every = 1;
  return config;
}

void flip(std::byte& byte) { byte ^= std::byte{0x10}; }

TEST(Replay, RankWhoseMemoryHasChangedIsNamedOnAllRanks) {
  auto texts = faults(checked(), [](TestCell& cell) {
    std::int64_t head = wire::working_form(cell.config(), cell.placement()).offset.back();
    flip(cell.segment("working").span<std::byte>("values")[static_cast<std::size_t>(head) + 2]);
  });
  for (const std::string& text : texts)
    EXPECT_THAT(text,
                AllOf(HasSubstr("Step 1 was computed twice"), HasSubstr("rank 1 on "), HasSubstr("working copy"),
                      HasSubstr("(bucket head)"), Not(HasSubstr("rank 0")), HasSubstr("Nothing of it was applied")));
}

TEST(Replay, RankThatComputesOtherGradientsIsNamed) {
  auto texts = faults(checked(), [](TestCell& cell) {
    auto tokens = cell.segment("batches").span<std::int32_t>("tokens");
    for (std::int32_t& token : tokens) token = (token + 1) % cell.config().model.vocabulary;
  });
  for (const std::string& text : texts)
    EXPECT_THAT(text, AllOf(HasSubstr("rank 1 on "), HasSubstr("gradients of its own rows"), Not(HasSubstr("rank 0"))));
}

TEST(Replay, TheNearestToTheCauseIsToldOfTheBucketThatIsComputedFirst) {
  PassHashes first, second;
  first.want(3);
  second.want(3);
  EXPECT_EQ(word_of(difference(first, second)), 0u);
  second.sums[0] = 1;
  EXPECT_EQ(difference(first, second).what, Differing::sums);
  second.gradients[0] = second.gradients[2] = 1;
  Difference found = difference_of(word_of(difference(first, second)));
  EXPECT_EQ(found.what, Differing::gradients);
  EXPECT_EQ(found.bucket, 2);
  second.parameters[1] = 1;
  EXPECT_EQ(difference(first, second).what, Differing::parameters);
}

}  // namespace
}  // namespace ganymede::worker
