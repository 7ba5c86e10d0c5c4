#include "services/worker/engine/job/membership.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/base/error.h"
#include "common/msg/server.h"
#include "common/os/futex.h"
#include "common/step_protocol/skip.h"
#include "services/worker/engine/job/attempt_end.h"
#include "services/worker/engine/job/generation_watch.h"
#include "services/worker/engine/job/step_reporter.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/engine/two_ranks.h"

namespace ganymede::worker {
namespace {

using namespace std::chrono_literals;

TEST(Membership, EqualRanksGoOnWithTheNextStep) {
  TwoRanks ranks(3);
  Beginning begin = ranks.exchange_both();
  EXPECT_EQ(begin.step, 4u);
  EXPECT_FALSE(begin.update_pending);
}

TEST(Membership, ARankThatHasNotCommittedTheLastStepNeedsTheOthersForIt) {
  TwoRanks ranks(3);
  --ranks.world.cell(1).epoch().words->chunks_done;
  EXPECT_TRUE(ranks.exchange_both().update_pending);
}

TEST(Membership, AFreshStartBeginsWithStepOne) {
  TwoRanks ranks(0);
  EXPECT_EQ(ranks.exchange_both().step, 1u);
}

TEST(Membership, ARankThatMissedTheDecisionAdoptsRecordAndCounts) {
  TwoRanks ranks(3);
  auto& behind = ranks.world.cell(1).control();
  behind.block->decided_step = 2;
  ranks.world.cell(1).epoch().words->chunks_done = 2 * ranks.world.cell(1).placement().chunks.size();
  behind.block->record_of(3) = {};
  std::fill(behind.expert_counts.begin(), behind.expert_counts.end(), 0);
  EXPECT_EQ(ranks.exchange_both().step, 4u);
  const auto& known = ranks.world.cell(0).control();
  EXPECT_EQ(behind.block->decided_step, 3u);
  EXPECT_EQ(behind.block->record_of(3).checksum, known.block->record_of(3).checksum);
  EXPECT_TRUE(std::equal(behind.expert_counts.begin(), behind.expert_counts.end(), known.expert_counts.begin()));
}

TEST(Membership, StatesThatAreTwoStepsApartLeadToTheCheckpoint) {
  TwoRanks ranks(3);
  ranks.world.cell(1).control().block->decided_step = 1;
  ranks.world.cell(1).epoch().words->chunks_done = ranks.world.cell(1).placement().chunks.size();
  try {
    ranks.exchange_both();
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::can_go_on) << "the launcher leads all ranks back";
    EXPECT_NE(std::string(e.what()).find("do not belong together"), std::string::npos) << e.what();
  }
}

TEST(Membership, JoinsOnlyAGenerationThatItHasNotJoined) {
  TestCell cell(tiny_config(), 0);
  auto& block = *cell.control().block;
  block.generation = 5;
  EXPECT_EQ(join_next_generation(cell, Deadline::after(1s), "a test"), 5u);
  EXPECT_EQ(block.joined_generation, 5u);
  EXPECT_THROW(join_next_generation(cell, Deadline::after(50ms), "a test"), Error);
  std::thread launcher([&] {
    std::this_thread::sleep_for(30ms);
    os::store_and_wake(block.generation, 6);
  });
  EXPECT_EQ(join_next_generation(cell, Deadline::after(10s), "a test"), 6u);
  launcher.join();
}

TEST(Membership, AsksForAGenerationOnlyWhenNobodyBeginsOneAfterAFault) {
  TestCell cell(tiny_config(), 0);
  auto& block = *cell.control().block;
  int asked = 0;
  auto ask = [&] {
    ++asked;
    os::store_and_wake(block.generation, 6);
  };
  block.generation = 5;
  EXPECT_EQ(rejoin(cell, 1, ask), 5u);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(rejoin(cell, 0.05, ask), 6u);
  EXPECT_EQ(asked, 1);
  auto last = static_cast<std::uint64_t>(plan::OperationKind::wait_update);
  EXPECT_GT(cell.control().services[0].operation, last) << "what it does is no operation of a plan";
}

TEST(Membership, LeavesOnlyWhenItsOwnCellHasCommitted) {
  TwoRanks ranks(2);
  step_protocol::Word& late = ranks.world.cell(1).epoch().words->chunks_done;
  std::uint64_t chunks = ranks.world.cell(1).placement().chunks.size();
  late = 2 * chunks - 1;
  std::atomic<int> left{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      leave_together(ranks.world.cell(rank), *ranks.communicators[rank], 2, {}, 10);
      ++left;
    });
  }
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(left, 0);
  os::store_and_wake(late, 2 * chunks);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, 2);
}

TEST(GenerationWatch, EndsTheAttemptWhenANewGenerationBegins) {
  TestCell cell(tiny_config(), 0);
  cell.control().block->generation = 1;
  AttemptEnd end;
  GenerationWatch watch(cell, 1, [&](const std::string& why) { end.over(why); });
  EXPECT_FALSE(end.is_over());
  cell.control().block->generation = 2;
  Deadline deadline = Deadline::after(10s);
  while (!end.is_over() && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(end.is_over());
}

TEST(AttemptEnd, EndsWhatIsGuardedAfterItWasOver) {
  TestWorld one(tiny_config());
  AttemptEnd end;
  end.over("generation 2 has begun");
  end.guard(nullptr, &one.engine(0));
  EXPECT_THROW(one.engine(0).train(1), Cancelled);
}

TEST(AttemptEnd, TellsWhatANewGenerationMends) {
  auto failed = [](auto fault) { return OperationFailed("gather", std::make_exception_ptr(fault)); };
  EXPECT_TRUE(mended_by_new_generation(failed(collectives::CollectiveError("gone"))));
  EXPECT_TRUE(mended_by_new_generation(failed(Interrupted("ended"))));
  EXPECT_TRUE(mended_by_new_generation(collectives::CollectiveError("gone")));
  EXPECT_TRUE(mended_by_new_generation(Cancelled("over")));
  EXPECT_FALSE(mended_by_new_generation(failed(Error(ExitCode::failed, "diverged"))));
  EXPECT_FALSE(mended_by_new_generation(std::bad_alloc()));
  try {
    rethrow_as_error(failed(Error(ExitCode::usage, "wrong\nstack")));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
}

/// A cell whose launcher takes reports only while it is not away.
class ReportingCell : public TestCell {
 public:
  ReportingCell() : TestCell(tiny_config(), 0) {}
  std::unique_ptr<msg::Client> launcher_client() override {
    return std::make_unique<msg::Client>(endpoint_, "worker.0.1", job());
  }
  std::atomic<bool> away{true};
  std::atomic<std::uint64_t> taken{0};  // step of the newest report

 private:
  msg::Message take(const msg::Message& request) {
    if (away) throw msg::NoAnswer();
    taken = request.as<fbs::StepReport>()->step();
    return msg::ack(request);
  }
  test::TemporaryFolder folder_;
  std::string endpoint_ = "ipc://" + folder_.path() + "/s";
  msg::Server server_{endpoint_, [this](const std::string&, const msg::Message& request) { return take(request); }};
};

StepNews news_of(std::uint64_t step) {
  StepNews news;
  news.result.record.step = step;
  news.result.record.loss_tokens = 1;
  return news;
}

TEST(StepReporter, KeepsTheStepsWithinReachOfTheRecordsWhileTheLauncherIsAway) {
  ReportingCell cell;
  StepReporter reporter(cell);
  reporter.send(news_of(1), 1, 60);  // step 2 may be decided: its record leaves that of step 1 whole
  std::atomic<bool> ahead{false};
  std::thread worker([&] {
    reporter.send(news_of(2), 1, 60);
    ahead = true;
  });
  std::this_thread::sleep_for(200ms);
  EXPECT_FALSE(ahead) << "step 3 would overwrite the record of step 1";
  EXPECT_EQ(cell.taken, 0u);
  cell.away = false;
  worker.join();
  EXPECT_GE(cell.taken, 1u);
  reporter.send(news_of(3), 0, 60);
  EXPECT_EQ(cell.taken, 3u);
}

TEST(StepReporter, IsNotHeldUpForEver) {
  ReportingCell cell;
  StepReporter reporter(cell);
  for (std::uint64_t step = 1; step <= 3; ++step) reporter.send(news_of(step), 0, 0.05);
  cell.away = false;
  reporter.send(news_of(4), 0, 60);
  EXPECT_EQ(cell.taken, 4u);
}

TEST(StepReport, CarriesTheRecordAndWhatWasMeasured) {
  StepNews news;
  news.result.record.step = 7;
  news.result.record.loss_sum = 30;
  news.result.record.loss_tokens = 10;
  news.result.record.apply = 0;
  news.result.record.skip_reason = static_cast<std::uint64_t>(step_protocol::SkipReason::non_finite);
  news.result.waits_ms = {1, 2, 3};
  news.result.exposed_communication_ms = 4;
  news.result.update_exposed_ms = 5;
  news.result.attention_logit_max = 12.5;
  news.traffic = {{"gather", {"dense", "bf16"}, 4000, 96}};
  msg::Message message = msg::Message::build(1, 1, [&](auto& builder) { return step_report(builder, news); });
  const auto* report = message.as<fbs::StepReport>();
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(report->step(), 7u);
  EXPECT_EQ(report->loss(), 3.0);
  EXPECT_EQ(report->skip_reason(), static_cast<std::uint64_t>(step_protocol::SkipReason::non_finite));
  EXPECT_EQ(report->skip_text()->str(), "its loss or gradients are not finite");
  EXPECT_TRUE(std::isnan(report->validation_loss()));
  EXPECT_EQ(report->lanes()->size(), static_cast<std::size_t>(plan::lane_count));
  EXPECT_EQ(report->waits()->Get(1)->busy_ms(), 2.0);
  EXPECT_EQ(report->exposed_communication_ms(), 4.0);
  EXPECT_EQ(report->update_exposed_ms(), 5.0);
  EXPECT_EQ(report->attention_logit_max(), 12.5);
  EXPECT_EQ(report->bytes_moved()->Get(0)->value(), 4096.0);
  ASSERT_EQ(report->traffic()->size(), 1u);
  EXPECT_EQ(report->traffic()->Get(0)->wire()->str(), "bf16");
  EXPECT_EQ(report->traffic()->Get(0)->inside(), 4000u);
  EXPECT_EQ(report->traffic()->Get(0)->between(), 96u);
}

}  // namespace
}  // namespace ganymede::worker
