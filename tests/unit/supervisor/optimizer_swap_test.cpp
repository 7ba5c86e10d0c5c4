#include "launcher/supervisor/optimizer_swap.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "common/cell/layouts.h"
#include "common/os/files.h"
#include "common/service/settings.h"
#include "tests/support/process_wait.h"
#include "tests/support/served_segments.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t warm_steps = 3;

/// A launcher's part of two cells in a run directory of its own. Its services sleep; `decide` plays the workers.
class OptimizerSwapTest : public ::testing::Test {
 protected:
  OptimizerSwapTest() {
    std::filesystem::current_path(folder_.path());
    std::filesystem::create_directory(service::log_folder);
    std::string program = folder_.path() + "/ganymede-optimizer";
    std::ofstream(program) << "#!/bin/sh\nexec sleep 1000\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    for (const char* other : {"checkpoint", "data", "worker"})
      std::filesystem::copy_file(program, folder_.path() + "/ganymede-" + other);
    config_.parallel.ranks = 2;
    config_.optimizer.hyper = {{"adamw.beta1", 0.9}};
    os::write_file_atomically(service::config_file, config::effective(config_));
    job_.id = 7;
    job_.plugins = {{{"adamw", {"momentum"}, false}, "plugins/adamw.so", 1}};
    service::write_job(job_);
    cells_.emplace(Cells::create(config_, job_, {0, 2}, 0, keeper_, [](std::uint64_t, std::uint64_t) {}));
    launch();
    crew_->start_all();
  }
  ~OptimizerSwapTest() override {
    end_services();
    std::filesystem::current_path(before_);
  }

  /// As when their launcher dies.
  void end_services() {
    swap_.reset();
    crew_->signal_all(SIGKILL, "their launcher ends");
    until([&] { return !crew_->any_alive(); });
  }
  /// As a launcher that comes first, or after another one.
  void launch() {
    epochs_.emplace(config_, service::read_job());
    changes_.emplace(config_, job_, *cells_, *epochs_);
    crew_.emplace(
        io_, config_, coordinator::RankRange{0, 2}, os::Machine{}, folder_.path(), folder_.path(), terminal_,
        [this](ServiceProcess& process, const os::Ending& ending) {
          if (swap_) swap_->crew().ended(process, ending);
        },
        [this](int rank) { return cells_->epoch_in_force(rank); });
    swap_.emplace(parts(1000));
  }
  SwapParts parts(std::uint64_t steps) {
    return {job_, *cells_, *crew_, *changes_, *epochs_, terminal_, HostBudget{}, steps, {}, keeper_};
  }

  static SwapOrder order(bool dry_run = false) {
    config::Config config;
    config.parallel.ranks = 2;
    config.optimizer.name = "lion";
    config.optimizer.hyper = {{"adamw.beta1", 0.9}, {"lion.beta1", 0.8}};
    return {
        config::effective(config), {{{"lion", {"momentum"}, false}, "plugins/lion.so", 2}}, warm_steps, dry_run, ""};
  }

  template <class Holds>
  void until(Holds holds) {
    test::wait_until(
        [&] {
          io_.restart();
          io_.poll();
          if (swap_) swap_->watch(now_seconds());
          if (crew_) crew_->watch(now_seconds());
          return holds();
        },
        20, "what the test waits for");
  }
  void until(SwapState state) {
    until([&] {
      auto now = swap_->under_way();
      return now && now->state == state;
    });
  }

  /// What the standby server of a rank says when it has its plugins and memory.
  void say_ready(int rank) {
    auto layout = shm::state_layout(placement::build(epochs_->config_of(1), rank, epochs_->of(1).optimizers()), 1);
    os::Fd fd = keeper_.get(shm::held_name(rank, "state.1"), Deadline::after_seconds(5));
    shm::Segment state = shm::Segment::attach(fd.get(), layout, job_.id);
    service::epoch_control_of(state).ready->store(1);
  }
  void offer() {
    swap_->order(order());
    until([&] { return crew_->standby_of(1) != nullptr && crew_->standby_of(1)->alive(); });
    for (int rank : {0, 1}) say_ready(rank);
    until(SwapState::warming);
  }
  void decide(std::uint64_t step, const std::function<void(step_protocol::DecisionRecord&)>& edit) {
    for (int rank : {0, 1}) decide_on(rank, step, edit);
  }
  void decide_on(int rank, std::uint64_t step, const std::function<void(step_protocol::DecisionRecord&)>& edit) {
    auto& block = *cells_->control(rank).block;
    auto& record = block.record_of(step);
    record = {};
    record.step = step;
    record.updates = step;
    edit(record);
    record.checksum = record.compute_checksum();
    block.decided_step = step;
  }
  bool holds(const std::string& name) const {
    for (const auto& held : keeper_.list(Deadline::after_seconds(5)))
      if (held.name == name) return true;
    return false;
  }

  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
  config::Config config_;
  service::Job job_;
  test::ServedSegments served_{std::uint64_t{1} << 40};
  shm::KeeperClient keeper_{served_.path()};
  boost::asio::io_context io_;
  int nowhere_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  Terminal terminal_{nowhere_, false};
  std::optional<Cells> cells_;
  std::optional<Epochs> epochs_;
  std::optional<Changes> changes_;
  std::optional<Crew> crew_;
  std::optional<OptimizerSwap> swap_;
};

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
  config::Config config;
  config.parallel.ranks = 2;
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
