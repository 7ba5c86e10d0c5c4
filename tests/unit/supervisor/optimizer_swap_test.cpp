#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/supervisor/optimizer_swap_fixture.h"

namespace ganymede::launcher {
namespace {

using ::testing::HasSubstr;

TEST_F(OptimizerSwapTest, ADryRunSaysWhatItNeedsAndChangesNothing) {
  SwapReport report = swap_->order(order(true));
  EXPECT_EQ(report.before, "adamw");
  EXPECT_EQ(report.after, "lion");
  EXPECT_EQ(report.cells, 2);
  EXPECT_GT(report.needed_per_cell, 0u);
  EXPECT_EQ(report.from_step, 2 + warm_steps);
  EXPECT_FALSE(swap_->under_way());
  EXPECT_TRUE(service::read_job().epochs.empty());
}

TEST_F(OptimizerSwapTest, AnOrderWhoseAnswerWasLostIsOne) {
  SwapOrder wish = order();
  wish.from = "ctl.7";
  ++wish.base;
  EXPECT_THROW(swap_->order(wish), Error) << "it was made from other values than those in force";
  EXPECT_FALSE(std::filesystem::exists("plugins/lion.so")) << "nobody else has it";
  copy_plugin("lion");
  --wish.base;
  EXPECT_EQ(swap_->order(wish).epoch, 1u);
  EXPECT_EQ(swap_->order(wish).epoch, 1u);
  wish.from = "ctl.8";
  EXPECT_THROW(swap_->order(wish), Error) << "another person's is another one";
}

TEST_F(OptimizerSwapTest, IsOfferedOnlyWhenTheStandbyOfEveryCellIsReady) {
  swap_->order(order());
  EXPECT_EQ(service::read_job().epoch(1).config, "config.1.toml");
  until([&] { return crew_->standby_of(1) != nullptr; });
  say_ready(0);
  for (int i = 0; i < 5; ++i) swap_->watch(now_seconds());
  EXPECT_EQ(cells_->prepared_change().number, 0u);
  say_ready(1);
  until(SwapState::warming);
  step_protocol::Setting setting = cells_->prepared_change();
  EXPECT_EQ(setting.number, 1u);
  EXPECT_EQ(setting.state_epoch, 1u);
  EXPECT_EQ(setting.warm_steps, warm_steps);
  EXPECT_THROW(swap_->order(order()), Error);
}

TEST_F(OptimizerSwapTest, TheStandbyOfACellWhoseRecordNamesItIsItsServerAndTheOldStateGoes) {
  offer();
  int standby = crew_->standby_of(0)->pid();
  decide_on(0, 9, [](auto& record) {
    record.change_number = record.state_epoch = 1;
    record.change_step = 9;
  });
  until([&] { return crew_->at(service::Kind::optimizer, 0).id().epoch == 1; });
  EXPECT_EQ(crew_->at(service::Kind::optimizer, 0).pid(), standby);
  EXPECT_EQ(crew_->at(service::Kind::optimizer, 1).id().epoch, 0u);
  EXPECT_TRUE(holds("rank.0/state.0"));
  decide_on(1, 9, [](auto& record) {
    record.change_number = record.state_epoch = 1;
    record.change_step = 9;
  });
  until([&] { return crew_->at(service::Kind::optimizer, 1).id().epoch == 1; });
  until([&] { return !swap_->under_way(); });
  EXPECT_FALSE(holds("rank.0/state.0"));
  EXPECT_TRUE(holds("rank.1/state.1"));
  service::Job job = service::read_job();
  ASSERT_EQ(job.epochs.size(), 1u);
  EXPECT_EQ(job.epochs[0].number, 1u);
  EXPECT_EQ(swap_->report(1).from_step, 9u);
  changes_->note();
  EXPECT_EQ(config::load(service::config_file, {}).optimizer.name, "lion");
  EXPECT_EQ(read_changes().recipe.at("optimizer.name"), "\"adamw\"");
}

TEST_F(OptimizerSwapTest, ThatTheMemoryIsNotThereForIsRefusedWithTheNumbersAndLeavesNothing) {
  launch_with([](config::Config& config) { config.launch.host_memory_limit_gib = 1.0 / 1024; });
  EXPECT_THAT(swap_->order(order(true)).reason, HasSubstr("launch.host_memory_limit_gib allows 1 MiB"));
  try {
    swap_->order(order());
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("The swap to 'lion' is refused"));
    EXPECT_THAT(error.what(), HasSubstr("are needed beside the run for 2 cells"));
  }
  EXPECT_FALSE(swap_->under_way());
  EXPECT_FALSE(std::filesystem::exists("plugins/lion.so"));
  EXPECT_TRUE(std::filesystem::exists("plugins/adamw.so"));
}

TEST_F(OptimizerSwapTest, TakesNoMoreMemoryThanTheMachineHas) {
  SwapParts all = parts(1000);
  all.machine = [] {
    os::Machine machine;
    machine.memory_total = std::uint64_t{1} << 40;
    machine.memory_available = 4096;
    return machine;
  };
  swap_.emplace(all);
  EXPECT_THAT(swap_->order(order(true)).reason, HasSubstr("this machine has only 4 KiB free"));
}

TEST_F(OptimizerSwapTest, AStandbyThatIsKilledBeforeTheOfferCostsTheSwapAlone) {
  swap_->order(order());
  until([&] { return crew_->standby_of(1) != nullptr && crew_->standby_of(1)->alive(); });
  int server = crew_->at(service::Kind::optimizer, 1).pid();
  ::kill(crew_->standby_of(1)->pid(), SIGKILL);
  until([&] { return !swap_->under_way(); });
  SwapReport report = swap_->report(1);
  EXPECT_EQ(report.state, SwapState::refused);
  EXPECT_EQ(report.rank, 1);
  EXPECT_THAT(report.reason, HasSubstr("SIGKILL"));
  EXPECT_EQ(crew_->at(service::Kind::optimizer, 1).pid(), server);
  EXPECT_EQ(cells_->prepared_change().number, 0u);
  EXPECT_FALSE(holds("rank.0/state.1"));
  EXPECT_EQ(service::read_job().epochs.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists("config.1.toml"));
  EXPECT_FALSE(std::filesystem::exists("plugins/lion.so"));
  EXPECT_TRUE(std::filesystem::exists("plugins/adamw.so"));
  EXPECT_EQ(swap_->order(order()).epoch, 2u) << "no number is given twice";
}

TEST_F(OptimizerSwapTest, AStandbyThatIsKilledAfterTheOfferComesBackOnceThenTheCellRefuses) {
  offer();
  decide(4, [](auto& record) { record.swap_change = 1, record.swap_step = 4, record.swap_updates = 4; });
  int first = crew_->standby_of(1)->pid();
  ::kill(first, SIGKILL);
  until([&] { return crew_->standby_of(1)->alive() && crew_->standby_of(1)->pid() != first; });
  EXPECT_EQ(cells_->refused_change(1), 0u);
  ::kill(crew_->standby_of(1)->pid(), SIGKILL);
  until([&] { return cells_->refused_change(1) == 1; });
  EXPECT_EQ(cells_->refused_change(0), 0u);
  ASSERT_TRUE(swap_->under_way()) << "what the other ranks decide is not known yet";
  decide(5, [](auto& record) { record.refused_change = 1; });
  until([&] { return !swap_->under_way(); });
  EXPECT_EQ(swap_->report(1).rank, 1);
  EXPECT_EQ(cells_->prepared_change().number, 2u);
  EXPECT_EQ(cells_->prepared_change().state_epoch, 0u);
  decide(6, [](auto& record) { record.change_number = 2, record.refused_change = 1, record.change_step = 6; });
  EXPECT_TRUE(changes_->note().empty()) << "nothing has changed";
}

/// All of the run waits for it, so it does not get a second try.
TEST_F(OptimizerSwapTest, AStandbyThatHangsIsKilledAndTheCellRefusesAtOnce) {
  launch_with([](config::Config& config) { config.launch.heartbeat_timeout_seconds = 1; });
  offer();
  ServiceProcess* standby = crew_->standby_of(1);
  crew_->registered(standby->id(), standby->pid());
  until([&] {
    if (standby->alive()) beat(*standby, "applying a step");
    return cells_->refused_change(1) == 1;
  });
  decide(5, [](auto& record) { record.refused_change = 1; });
  until([&] { return !swap_->under_way(); });
  EXPECT_EQ(swap_->report(1).rank, 1);
  EXPECT_EQ(swap_->report(1).reason,
            "its standby optimizer server (plugins/lion.so) ended: killed by SIGKILL, it made no progress for 1.0 s "
            "(applying a step); see logs/optimizer.1.1.log");
}

TEST_F(OptimizerSwapTest, AStandbyThatItsWorkerHasNotSeenFollowIsNamed) {
  offer();
  ServiceProcess* standby = crew_->standby_of(0);
  crew_->registered(standby->id(), standby->pid());
  beat(*standby, "taking over the state");
  cells_->refuse_change(0, 1);
  decide(5, [](auto& record) { record.refused_change = 1; });
  until([&] { return !swap_->under_way(); });
  EXPECT_EQ(swap_->report(1).reason,
            "its standby optimizer server (plugins/lion.so) did not keep up (taking over the state)");
}

TEST_F(OptimizerSwapTest, OneThatIsOrderedWhileARefusedOneIsTakenBackIsToBeOrderedAgain) {
  offer();
  cells_->refuse_change(0, 1);
  decide(5, [](auto& record) { record.refused_change = 1; });
  until(SwapState::refused);
  for (bool dry_run : {true, false}) {
    SwapReport report = swap_->order(order(dry_run));
    EXPECT_EQ(report.state, SwapState::refused);
    EXPECT_EQ(report.epoch, 0u);
  }
  until([&] { return !swap_->under_way(); });
  EXPECT_EQ(swap_->order(order()).state, SwapState::refused) << "what is in force is not prepared again everywhere";
  decide(6, [](auto& record) { record.change_number = 2, record.refused_change = 1, record.change_step = 6; });
  EXPECT_EQ(swap_->order(order()).epoch, 2u);
}

TEST_F(OptimizerSwapTest, WhoseCopyIsGoneIsRefused) {
  SwapOrder wish = order();
  std::filesystem::remove("plugins/lion.so");
  EXPECT_THROW(swap_->order(wish), Error);
  EXPECT_FALSE(swap_->under_way());
}

TEST_F(OptimizerSwapTest, TheFaultOfAStandbyIsTheReasonOfTheRefusal) {
  offer();
  EXPECT_FALSE(swap_->crew().fault(crew_->at(service::Kind::optimizer, 0).pid(), "not a standby's"));
  EXPECT_TRUE(swap_->crew().fault(crew_->standby_of(0)->pid(), "its plugin is broken"));
  ::kill(crew_->standby_of(0)->pid(), SIGTERM);
  until([&] { return cells_->refused_change(0) == 1; });
  decide(5, [](auto& record) { record.refused_change = 1; });
  until([&] { return !swap_->under_way(); });
  EXPECT_EQ(swap_->report(1).reason, "its plugin is broken");
}

TEST_F(OptimizerSwapTest, ALauncherThatComesBackGoesOnWithAnOfferAndDropsWhatWasNotOffered) {
  offer();
  end_services();
  launch();
  ASSERT_TRUE(swap_->under_way());
  EXPECT_EQ(swap_->under_way()->state, SwapState::warming);
  until([&] { return crew_->standby_of(0) != nullptr && crew_->standby_of(1) != nullptr; });
  decide(5, [](auto& record) { record.refused_change = 1; });
  until([&] { return !swap_->under_way(); });
  decide(6, [](auto& record) { record.change_number = 2, record.refused_change = 1; });

  swap_->order(order());
  end_services();
  launch();
  until([&] { return !swap_->under_way(); });
  EXPECT_EQ(swap_->report(2).state, SwapState::refused);
  EXPECT_FALSE(holds("rank.0/state.2"));
}

TEST_F(OptimizerSwapTest, OtherKeysAndTooFewStepsAreRefused) {
  SwapOrder other = order();
  config::Config config = config_;
  config.data.seq_len = 128;
  other.configuration = config::effective(config);
  EXPECT_THROW(swap_->order(other), Error);
  swap_.emplace(parts(4));
  try {
    swap_->order(order());
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("swap.warm_steps"));
  }
}

}  // namespace
}  // namespace ganymede::launcher
