#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "common/step_protocol/change.h"
#include "services/optimizer/server.h"
#include "tests/unit/optimizer/cell.h"
#include "tests/unit/optimizer/lone_context.h"

namespace ganymede::optimizer {
namespace {

namespace sp = step_protocol;

/// A server in a thread.
class Server {
 public:
  Server(LoneContext& context, std::uint64_t epoch)
      : thread_([this, &context, epoch] {
          try {
            serve(context, epoch, [this] { return end_.load(); });
          } catch (const std::exception& error) {
            fault_ = error.what();
          }
          ended_ = true;
        }) {}
  ~Server() {
    end_ = true;
    thread_.join();
    EXPECT_EQ(fault_, "");
  }
  bool ended() const { return ended_; }

 private:
  std::atomic<bool> end_{false}, ended_{false};
  std::string fault_;
  std::thread thread_;
};

/// A cell with AdamW whose optimizer is swapped for Lion.
class StandbyServer : public testing::Test {
 protected:
  StandbyServer() {
    context_.prepare_epoch("lion");
    sp::Setting setting{.number = 1, .lr = 1e-2};
    setting.hyper_count = 2;  // of Lion: beta1, beta2
    std::ranges::copy(std::array{0.9, 0.99}, setting.hyper);
    setting.state_epoch = 1;
    sp::prepare(*context_.control().block, setting);
  }

  void name_swap() {
    decide(context_, [](sp::DecisionRecord& record) {
      record.swap_change = 1;
      record.swap_step = 2;
    });
  }
  void take_over() {
    decide(context_, [&](sp::DecisionRecord& record) {
      record.state_epoch = record.change_number = 1;
      record.hyper_count = 2;
      std::ranges::copy(std::array{0.9, 0.99}, record.hyper);
      record.optimizer_hash = service::plugin_hash(context_.facts.epochs[1].plugins);
    });
  }
  std::uint64_t committed(std::uint64_t epoch) {
    return sp::committed_step(service::epoch_control(context_, epoch).words->chunks_done.load(),
                              context_.placement_of(epoch).chunks.size());
  }
  static bool eventually(const std::function<bool()>& done) {
    Deadline deadline = Deadline::after_seconds(20);
    while (!done() && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done();
  }
  bool ready() { return service::epoch_control(context_, 1).ready->load() == 1; }

  LoneContext context_{Cell::small_config()};
};

TEST_F(StandbyServer, TakesStateOverFollowsAndAppliesWhenItsEpochIsNamed) {
  Server old(context_, 0);
  auto next = std::make_unique<Server>(context_, 1);
  ASSERT_TRUE(eventually([&] { return ready() && context_.control().block->state_ready.load() == 1; }));
  decide(context_);
  ASSERT_TRUE(eventually([&] { return committed(0) == 1; }));
  EXPECT_EQ(committed(1), 0u);
  name_swap();
  ASSERT_TRUE(eventually([&] { return committed(1) == 2; }));
  auto first_moment = context_.segment("state.0").span<float>("slot.0");
  EXPECT_TRUE(std::ranges::equal(context_.segment("state.1").span<float>("slot.0"), first_moment));
  next.reset();  // killed …
  name_swap();
  next = std::make_unique<Server>(context_, 1);  // … its successor follows where it was
  ASSERT_TRUE(eventually([&] { return committed(0) == 3 && committed(1) == 3; }));
  EXPECT_FALSE(old.ended());
  std::vector<float> before;
  std::ranges::copy(context_.segment("master").span<float>("values"), std::back_inserter(before));
  take_over();
  ASSERT_TRUE(eventually([&] { return committed(1) == 4 && old.ended(); }));
  EXPECT_EQ(committed(0), 3u);
  std::size_t at = static_cast<std::size_t>(context_.placement().owned[0].shard_offset);
  EXPECT_NEAR(context_.segment("master").span<float>("values")[at], before[at] - 1e-2, 1e-5) << "Lion's step";
  for (const auto& word : context_.control().working_copy_ready) EXPECT_EQ(word, 4u);
}

TEST_F(StandbyServer, EndsWhenTheSwapIsRefusedAndTheOldOneGoesOn) {
  Server old(context_, 0), next(context_, 1);
  ASSERT_TRUE(eventually([&] { return ready() && context_.control().block->state_ready.load() == 1; }));
  decide(context_, [](sp::DecisionRecord& record) { record.refused_change = 1; });
  ASSERT_TRUE(eventually([&] { return next.ended() && committed(0) == 1; }));
  decide(context_, [](sp::DecisionRecord& record) { record.refused_change = 1; });
  ASSERT_TRUE(eventually([&] { return committed(0) == 2; }));
  EXPECT_FALSE(old.ended());
  EXPECT_EQ(committed(1), 0u);
}

}  // namespace
}  // namespace ganymede::optimizer
