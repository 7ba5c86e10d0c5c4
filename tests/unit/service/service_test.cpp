#include "common/service/service.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "common/base/error.h"
#include "common/os/futex.h"
#include "tests/unit/service/fake_node.h"

namespace ganymede::service {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Deadline soon() { return Deadline::after_seconds(20); }

class Service : public testing::Test {
 protected:
  Service() { node_.make_segments(1); }
  FakeNode node_;
};

TEST_F(Service, RegistersAndBeatsWithWhatItDoes) {
  int code = node_.run(Kind::data, 1, [&](Context& context) {
    EXPECT_EQ(context.rank(), 1);
    EXPECT_EQ(context.job(), 99u);
    EXPECT_EQ(context.placement().columns.size(), 2u);
    EXPECT_EQ(context.placement().rank, 1);
    context.at(3, 2, "packing row 5");
    EXPECT_TRUE(
        node_.eventually([&] { return !node_.beats_.empty() && node_.beats_.back().detail == "packing row 5"; }));
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(node_.registered_, std::vector<std::string>{"data.1.1"});
  EXPECT_EQ(node_.beats_.back().progress, 1u);
  EXPECT_EQ(node_.beats_.back().step, 17u);
  EXPECT_EQ(node_.beats_.back().state, fbs::ServiceState::running);
  EXPECT_TRUE(node_.fatals().empty());
}

TEST_F(Service, ItsWordsAreSeenByOtherProcessesAndProgressOnlyGrows) {
  for (std::uint64_t run = 0; run < 2; ++run) {
    node_.run(Kind::optimizer, 1, [&](Context& context) {
      const auto& words = context.control().services[static_cast<int>(Kind::optimizer)];
      EXPECT_EQ(words.progress.load(), run);
      context.at(7, 4, "update");
      EXPECT_EQ(words.operation.load(), 7u);
      EXPECT_EQ(words.bucket.load(), 4u);
      EXPECT_GT(words.since_ns.load(), 0u);
    });
  }
}

TEST_F(Service, FinishesWhenTheLauncherAsks) {
  node_.finish_ = true;
  std::uint64_t waited = 0;
  int code = node_.run(Kind::worker, 1, [&](Context& context) {
    auto never = [](std::uint64_t) { return false; };
    EXPECT_FALSE(context.wait(context.control().block->decided_step, never, {}, soon(), "a step"));
    EXPECT_TRUE(context.finishing());
    ++waited;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(waited, 1u);
}

TEST_F(Service, FinishesOnASignal) {
  for (int signal : {SIGTERM, SIGINT}) {
    int code = node_.run(Kind::worker, 1, [&](Context& context) {
      ::kill(::getpid(), signal);
      auto never = [](std::uint64_t) { return false; };
      EXPECT_FALSE(context.wait(context.control().block->decided_step, never, {}, soon(), "a step"));
    });
    EXPECT_EQ(code, 0);
  }
}

TEST_F(Service, AnErrorIsReportedAsFatalAndBecomesTheExitCode) {
  EXPECT_EQ(node_.run(Kind::checkpoint, 1, [](Context&) { fail("The disk is full."); }), 1);
  EXPECT_EQ(node_.run(Kind::checkpoint, 1, [](Context&) { throw Error(ExitCode::can_go_on, "Later."); }), 75);
  EXPECT_EQ(node_.run(Kind::checkpoint, 1, [](Context&) { throw std::runtime_error("from a library\nframe 0\n"); }), 1);
  using Fatal = std::vector<std::pair<int, std::string>>;
  EXPECT_EQ(node_.fatals(), (Fatal{{1, "The disk is full."}, {75, "Later."}, {1, "from a library"}}));
  EXPECT_THAT(os::read_file("logs/checkpoint.1.log"), HasSubstr("The disk is full."));
}

TEST_F(Service, UnreadableJobIsReportedAsFatal) {
  std::filesystem::remove(job_file);
  std::filesystem::create_symlink("/dev/null", job_file);
  EXPECT_EQ(node_.run(Kind::data, 1, [](Context&) { ADD_FAILURE(); }), 1);
  std::filesystem::remove(job_file);
  os::write_file_atomically(job_file, "{\"job\": 99");
  EXPECT_EQ(node_.run(Kind::data, 1, [](Context&) { ADD_FAILURE(); }), 1);
  std::filesystem::remove(job_file);
  EXPECT_EQ(node_.run(Kind::data, 1, [](Context&) { ADD_FAILURE(); }), 1);
  auto fatals = node_.fatals();
  ASSERT_EQ(fatals.size(), 3u);
  EXPECT_THAT(fatals[0].second, AllOf(HasSubstr("job.json is not a file"), HasSubstr("start the run again")));
  EXPECT_THAT(fatals[1].second, AllOf(HasSubstr("job.json is damaged"), HasSubstr("start the run again")));
  EXPECT_THAT(fatals[2].second,
              AllOf(StartsWith(std::filesystem::absolute(job_file).string()), HasSubstr("was removed"),
                    HasSubstr("start the run again"), Not(HasSubstr("ove it away"))));
}

TEST_F(Service, AnErrorWhileItFinishesIsNoFault) {
  int code = node_.run(Kind::data, 1, [&](Context& context) {
    ::kill(::getpid(), SIGTERM);
    while (!context.finishing()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fail("A peer is gone.");
  });
  EXPECT_EQ(code, 1);
  EXPECT_TRUE(node_.fatals().empty());
}

TEST_F(Service, ASecondProcessOfOneServiceIsRefusedAndEndsNothing) {
  int second = -1;
  node_.run(Kind::data, 1, [&](Context&) {
    second = node_.run(Kind::data, 1, [](Context&) { ADD_FAILURE(); });
    EXPECT_EQ(node_.run(Kind::optimizer, 1, [](Context&) {}), 0);
  });
  EXPECT_EQ(second, 1);
  EXPECT_TRUE(node_.fatals().empty());
}

TEST_F(Service, SegmentsAreMappedOnceAndChecked) {
  node_.run(Kind::optimizer, 1, [&](Context& context) {
    shm::Segment& master = context.segment("master");
    EXPECT_EQ(master.span<float>("values").size(), static_cast<std::size_t>(context.placement().shard_elements));
    EXPECT_EQ(&master, &context.segment("master"));
    EXPECT_EQ(context.segment("state.0").layout().entries.size(), 9u);
    EXPECT_THROW(context.segment("state.1"), Error);
  });
}

TEST_F(Service, ASegmentOfAnotherConfigurationIsAFaultThatNamesTheEntry) {
  config::Config other = node_.config_;
  other.model.layers += 1;
  os::write_file_atomically(config_file, config::effective(other));
  EXPECT_EQ(node_.run(Kind::data, 1, [](Context&) { ADD_FAILURE(); }), 1);
  auto fatals = node_.fatals();
  ASSERT_EQ(fatals.size(), 1u);
  EXPECT_THAT(fatals[0].second, AllOf(HasSubstr("\"control\""), HasSubstr("\"gradients_ready\"")));
}

TEST_F(Service, AWaitSeesAStoreOfAnotherProcessAndBeatsAsWaiting) {
  node_.run(Kind::worker, 1, [&](Context& context) {
    step_protocol::Word& word = context.control().block->snapshot_request;
    std::thread other([&] {
      EXPECT_TRUE(node_.eventually(
          [&] { return !node_.beats_.empty() && node_.beats_.back().state == fbs::ServiceState::waiting; }));
      os::store_and_wake(word, 5);
    });
    EXPECT_TRUE(context.wait(
        word, [](std::uint64_t value) { return value == 5; }, {}, soon(), "the store"));
    other.join();
  });
}

TEST_F(Service, AWaitGivesUpWhenToldAndFailsAtItsDeadline) {
  node_.run(Kind::worker, 1, [&](Context& context) {
    step_protocol::Word& word = context.control().block->snapshot_request;
    auto never = [](std::uint64_t) { return false; };
    EXPECT_FALSE(context.wait(
        word, never, [] { return true; }, soon(), "nothing"));
    try {
      context.wait(word, never, {}, Deadline::after_seconds(0.05), "batch 12");
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("worker.1"), HasSubstr("batch 12")));
    }
  });
}

TEST_F(Service, GoesOnWhileTheLauncherIsAwayAndBeatsAgainWhenItIsBack) {
  int code = node_.run(Kind::data, 1, [&](Context& context) {
    EXPECT_TRUE(node_.eventually([&] { return !node_.beats_.empty(); }));
    node_.stop_launcher();
    context.at(1, 1, "while it is away");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_FALSE(context.finishing());
    node_.start_launcher();
    EXPECT_TRUE(node_.eventually([&] { return node_.beats_.back().detail == "while it is away"; }));
  });
  EXPECT_EQ(code, 0);
}

TEST_F(Service, ClientsOfOneServiceHaveIdentitiesOfTheirOwn) {
  node_.run(Kind::data, 1, [&](Context& context) {
    auto first = context.launcher_client();
    auto second = context.launcher_client();
    auto fill = [](auto& builder) { return msg::Message::body(fbs::CreateStatusRequest(builder)); };
    for (int i = 0; i < 3; ++i) {
      EXPECT_NO_THROW(first->call(fill, soon()));
      EXPECT_NO_THROW(second->call(fill, soon()));
    }
  });
}

TEST_F(Service, BadArgumentsAreWrongUsage) {
  auto code = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "service");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return run(Kind::data, static_cast<int>(argv.size()), argv.data(), [](Context&) { ADD_FAILURE(); });
  };
  EXPECT_EQ(code({}), 2);
  EXPECT_EQ(code({"--run", node_.folder_}), 2);
  EXPECT_EQ(code({"--run", node_.folder_, "--rank", "x"}), 2);
  EXPECT_EQ(code({"--run", node_.folder_, "--rank", "-1"}), 2);
  EXPECT_EQ(code({"--run", node_.folder_, "--rank", "2"}), 2);
  EXPECT_EQ(code({"--run", node_.folder_, "--rank"}), 2);
  EXPECT_EQ(code({"--walk", node_.folder_, "--rank", "1"}), 2);
  EXPECT_EQ(code({"--run", node_.folder_ + "/missing", "--rank", "1"}), 1);
}

}  // namespace
}  // namespace ganymede::service
