#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/msg/client.h"
#include "common/service/run_directory.h"
#include "launcher/supervisor/phase_server.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {
namespace {

class PhaseServerTest : public ::testing::Test {
 protected:
  PhaseServerTest() {
    std::filesystem::current_path(folder_.path());
    std::filesystem::create_directory("ipc");
  }
  ~PhaseServerTest() override { std::filesystem::current_path("/"); }

  /// With which a checkpoint, which needs services, is refused.
  static ExitCode refusal() {
    msg::Client client(fmt::format("ipc://{}", service::launcher_socket), "ctl.1", 0);
    try {
      client.call([](auto& builder) { return msg::Message::body(fbs::CreateCheckpointRequest(builder)); },
                  Deadline::after_seconds(10));
    } catch (const msg::Refusal& no) {
      EXPECT_THAT(no.what(), ::testing::HasSubstr("no services now"));
      return no.code();
    }
    return ExitCode::done;
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(PhaseServerTest, OfALauncherThatTakesOverAsksForPatienceUntilItBeginsLongWork) {
  PhaseServer server("run", "recovering", "making the run directory ready");
  EXPECT_EQ(refusal(), ExitCode::can_go_on);
  server.enter("packing the dataset");
  EXPECT_EQ(refusal(), ExitCode::failed);
}

TEST_F(PhaseServerTest, OfALauncherThatEndsPromisesNothing) {
  PhaseServer server("run", "stopping", "ending the services");
  EXPECT_EQ(refusal(), ExitCode::failed);
}

}  // namespace
}  // namespace ganymede::launcher
