#include "services/optimizer/plugin_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/error.h"

namespace ganymede::optimizer {
namespace {

using testing::HasSubstr;

/// The text of the Error of what `body` does while the code of a plugin runs.
std::string fault(const std::function<void()>& body, const GuardLimit& limit = {}) {
  try {
    guarded(limit, [&] {
      InPlugin in_plugin("/p/bad.so");
      body();
      return 0;
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    return error.what();
  }
  return "no fault";
}

TEST(PluginGuard, GivesBackTheExitCodeOfWhatItGuards) {
  EXPECT_EQ(guarded({}, [] { return 0; }), 0);
  EXPECT_EQ(guarded({}, [] { return 2; }), 2);
  EXPECT_EQ(fault([] {}), "no fault");
}

TEST(PluginGuard, NamesThePluginThatEndsTheProgram) {
  EXPECT_EQ(fault([] { ::_exit(0); }),
            "optimizer plugin /p/bad.so ended the program that loads it (exit code 0): mend it, or name another");
  EXPECT_THAT(fault([] { ::raise(SIGKILL); }), HasSubstr("/p/bad.so ended the program that loads it (killed by SIG"));
  try {
    guarded({}, [] { return ::raise(SIGKILL); });
    ADD_FAILURE() << "no fault";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("/p/bad.so"))) << "its code does not run any more";
  }
}

TEST(PluginGuard, NamesThePluginThatDoesNotReturnAndTheTime) {
  auto loop = [] {
    while (true) ::pause();
  };
  EXPECT_EQ(fault(loop, {0.2, ", or allow it more time with --wait"}),
            "optimizer plugin /p/bad.so was still being loaded and tried after 200 ms: its constructors, its entry or "
            "its functions do not return; mend it, or allow it more time with --wait");
}

TEST(PluginGuard, OfACopyTheFileThatAPersonGaveIsNamed) {
  std::string told = fault([] {
    InPlugin copy("/run/plugins/bad.0123.so");
    ::_exit(0);
  });
  EXPECT_THAT(told, HasSubstr("/p/bad.so"));
}

}  // namespace
}  // namespace ganymede::optimizer
