#include "launcher/supervisor/service_binaries.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/os/files.h"
#include "common/service/protocol.h"
#include "common/service/run_directory.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {
namespace {

using coordinator::ServiceBinary;
using service::Kind;
using testing::HasSubstr;

class Binaries : public ::testing::Test {
 protected:
  Binaries() {
    std::filesystem::current_path(folder_.path());
    os::write_file_atomically(service::config_file, config::effective({}));
    service::Job job;
    job.id = 7;
    job.plugins = {{{"adamw", {"first_moment", "second_moment"}, false}, "plugins/a.so", 1}};
    service::write_job(job);
  }
  ~Binaries() override { std::filesystem::current_path(before_); }

  /// A program of this content, where a person has it.
  ServiceBinary made(const std::string& content) {
    std::string path = folder_.path() + "/built-" + content;
    std::ofstream(path) << content;
    std::uint64_t hash = hash64(content);
    return {fmt::format("programs/ganymede-worker.{:016x}", hash), path, hash, service::protocol()};
  }
  /// `made`, and copied as `ctl restart` does.
  ServiceBinary copied(const std::string& content) {
    ServiceBinary binary = made(content);
    os::make_private_folder(service::program_folder);
    std::filesystem::copy_file(binary.path, binary.file);
    return binary;
  }
  std::string error_of(const ServiceBinary& binary) {
    try {
      ServiceBinaries().order(Kind::worker, 0, binary);
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
    return "no error";
  }

  ExitCode code_ = ExitCode::done;
  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
};

TEST_F(Binaries, AnOrderHoldsForLaterLaunchersAndForThatServiceOfThatRankAlone) {
  ServiceBinary binary = copied("one");
  ServiceBinaries first;
  first.order(Kind::worker, 1, binary);
  EXPECT_TRUE(first.of(Kind::worker, 1).trial);
  ServiceBinaries second;
  EXPECT_EQ(second.of(Kind::worker, 1).now.file, binary.file);
  EXPECT_TRUE(second.of(Kind::worker, 1).trial);
  EXPECT_EQ(second.of(Kind::worker, 0).now.file, "");
  EXPECT_EQ(second.of(Kind::data, 1).now.file, "");
  second.prove(Kind::worker, 1);
  EXPECT_FALSE(ServiceBinaries().of(Kind::worker, 1).trial);
  second.order(Kind::worker, 1, {});
  EXPECT_EQ(ServiceBinaries().of(Kind::worker, 1).now.file, "");
}

TEST_F(Binaries, OneThatDiesTwiceOnTrialGivesWayToTheOneBefore) {
  ServiceBinary good = copied("good"), bad = copied("bad"), worse = copied("worse");
  ServiceBinaries binaries;
  binaries.order(Kind::worker, 0, good);
  binaries.prove(Kind::worker, 0);
  binaries.order(Kind::worker, 0, bad);
  binaries.order(Kind::worker, 0, worse);
  EXPECT_EQ(binaries.died(Kind::worker, 0, "exit code 3"), std::nullopt);
  auto told = binaries.died(Kind::worker, 0, "killed by SIGSEGV");
  ASSERT_TRUE(told);
  for (const std::string& part : {std::string("worker of rank 0"), worse.path, std::string("2 times"),
                                  std::string("killed by SIGSEGV"), good.file + " (of " + good.path + ") again"})
    EXPECT_THAT(*told, HasSubstr(part));
  auto state = ServiceBinaries().of(Kind::worker, 0);
  EXPECT_EQ(state.now.file, good.file);
  EXPECT_FALSE(state.trial);
  EXPECT_EQ(state.refusal, *told);
  EXPECT_GT(state.refused, 0u);
}

TEST_F(Binaries, OrderingTheOneInForceIsNoTrial) {
  ServiceBinary binary = copied("one");
  ServiceBinaries binaries;
  binaries.order(Kind::data, 0, {});
  EXPECT_FALSE(binaries.of(Kind::data, 0).trial) << "the installed one";
  binaries.order(Kind::data, 0, binary);
  binaries.prove(Kind::data, 0);
  binaries.order(Kind::data, 0, binary);
  EXPECT_FALSE(binaries.of(Kind::data, 0).trial);
}

TEST_F(Binaries, AnOrderEndsTheRefusalOfTheOneBefore) {
  ServiceBinaries binaries;
  binaries.refuse(Kind::worker, 0, 9, "not here");
  EXPECT_EQ(ServiceBinaries().of(Kind::worker, 0).refusal, "not here");
  EXPECT_EQ(ServiceBinaries().of(Kind::worker, 0).refused, 9u);
  binaries.order(Kind::worker, 0, copied("one"));
  EXPECT_EQ(ServiceBinaries().of(Kind::worker, 0).refusal, "");
}

TEST_F(Binaries, AFileThatIsNotHereIsTakenFromNode0OrFromThePathWhereItIsTheSame) {
  ServiceBinary shared = copied("shared");
  std::filesystem::create_directory("node.1");
  for (const char* file : {service::config_file, service::job_file})
    std::filesystem::copy_file(file, std::string("node.1/") + file);
  std::filesystem::current_path("node.1");
  std::filesystem::remove(shared.path);
  EXPECT_EQ(error_of(shared), "no error");
  EXPECT_EQ(os::read_file(shared.file), "shared");
  EXPECT_NE(std::filesystem::status(shared.file).permissions() & std::filesystem::perms::owner_exec,
            std::filesystem::perms::none);
  ServiceBinary at_path = made("at-path");
  EXPECT_EQ(error_of(at_path), "no error");
  EXPECT_EQ(os::read_file(at_path.file), "at-path");
  ServiceBinary changed = made("changed");
  std::ofstream(changed.path) << "another";
  EXPECT_THAT(error_of(changed), HasSubstr("copy it to the same path on this node"));
  EXPECT_EQ(ServiceBinaries().of(Kind::worker, 0).now.file, at_path.file) << "nothing changed";
}

TEST_F(Binaries, OneOfAnotherProtocolIsRefused) {
  ServiceBinary other = copied("other");
  other.protocol = "0123456789abcdef/0123456789abcdef";
  EXPECT_THAT(error_of(other), HasSubstr("speaks another protocol than this run"));
  EXPECT_EQ(code_, ExitCode::usage);
}

TEST_F(Binaries, ANewRunForgetsThemAndSaysSo) {
  EXPECT_EQ(ServiceBinaries::clear(), "");
  ServiceBinary binary = copied("one");
  ServiceBinaries().order(Kind::worker, 0, binary);
  EXPECT_THAT(ServiceBinaries::clear(), HasSubstr("installed programs again"));
  EXPECT_EQ(ServiceBinaries().of(Kind::worker, 0).now.file, "");
  EXPECT_FALSE(std::filesystem::exists(binary.file));
  EXPECT_EQ(ServiceBinaries::clear(), "");
}

TEST_F(Binaries, ADamagedFileIsNamed) {
  std::ofstream("programs.json") << "{\"programs\": [{}]}";
  EXPECT_THROW(ServiceBinaries(), Error);
}

}  // namespace
}  // namespace ganymede::launcher
