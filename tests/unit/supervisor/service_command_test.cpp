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

TEST(ServiceCommand, ABlankWrapIsNone) {
  EXPECT_EQ(arguments("  "), arguments(""));
  EXPECT_EQ(arguments("")[0], "/bin/ganymede-worker");
}

}  // namespace
}  // namespace ganymede::launcher
