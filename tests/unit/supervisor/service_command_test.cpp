#include "launcher/supervisor/service_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"

namespace ganymede::launcher {
namespace {

std::vector<std::string> arguments(const std::string& wrap, service::Kind kind = service::Kind::worker) {
  config::Config config;
  config.launch.wrap_worker = wrap;
  return service_command({kind, 3}, config, {}, "/bin", "/r/run").arguments;
}

TEST(ServiceCommand, WrapsTheWorkerAlone) {
  using testing::ElementsAre;
  EXPECT_THAT(arguments("gdb --args"),
              ElementsAre("/usr/bin/env", "gdb", "--args", "/bin/ganymede-worker", "--run", "/r/run", "--rank", "3"));
  EXPECT_THAT(arguments("gdb --args", service::Kind::data),
              ElementsAre("/bin/ganymede-data", "--run", "/r/run", "--rank", "3"));
}

TEST(ServiceCommand, AWrapperThatDoesNotExistIsRefusedByName) {
  for (const char* there : {"", "  ", "env", "env -i FOO=1", "/usr/bin/env -i"}) EXPECT_NO_THROW(check_wrapper(there));
  for (const char* missing : {"no-such-debugger --args", "/usr/bin/no-such-debugger", "/usr"}) {
    try {
      check_wrapper(missing);
      ADD_FAILURE() << missing << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), testing::HasSubstr("'launch.wrap_worker'"));
      EXPECT_THAT(error.what(), testing::HasSubstr(missing));
    }
  }
}

TEST(ServiceCommand, AnOptimizerServerOfALaterEpochIsToldWhich) {
  config::Config config;
  os::Command command = service_command({service::Kind::optimizer, 3, 2}, config, {}, "/bin", "/r/run");
  EXPECT_THAT(command.arguments,
              testing::ElementsAre("/bin/ganymede-optimizer", "--run", "/r/run", "--rank", "3", "--epoch", "2"));
  EXPECT_EQ(command.output_file, "logs/optimizer.2.3.out");
  EXPECT_EQ((ServiceId{service::Kind::optimizer, 3, 2}).text(), "optimizer of rank 3 (state epoch 2)");
}

TEST(ServiceCommand, ABlankWrapIsNone) {
  EXPECT_EQ(arguments("  "), arguments(""));
  EXPECT_EQ(arguments("")[0], "/bin/ganymede-worker");
}

}  // namespace
}  // namespace ganymede::launcher
