#include "launcher/cli/ask_launcher.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "common/base/error.h"
#include "common/service/run_directory.h"
#include "launcher/cli/run_access.h"

namespace ganymede::cli {
namespace {

constexpr double answer_seconds = 15;
constexpr double look_seconds = 1;                     // between looks whether there is still a run that could answer
constexpr std::chrono::milliseconds again_after{100};  // when a launcher is only just taking over

}  // namespace

void require_alive(const std::string& run) {
  enter_run(run);
  if (!run_is_alive()) fail("No job runs in {}.", run);
}

void fail_ended() { fail("The run in {} has ended.", std::filesystem::current_path().string()); }

msg::Message ask(const msg::Client::Fill& fill) {
  msg::Client client(fmt::format("ipc://{}", service::launcher_socket), fmt::format("ctl.{}", getpid()), 0);
  Deadline deadline = Deadline::after_seconds(answer_seconds);
  while (true) {
    try {
      return client.call(fill, Deadline::after_seconds(look_seconds));
    } catch (const msg::Refusal& refusal) {
      if (refusal.code() != ExitCode::can_go_on) throw;
      if (deadline.passed()) fail("{}", refusal.what());
      std::this_thread::sleep_for(again_after);
    } catch (const Error&) {
      if (!run_is_alive()) fail_ended();
      if (deadline.passed())
        fail(
            "The launcher of the run in {} did not answer within {:.0f} s: it starts again or hangs; see "
            "{}/launcher.log.",
            std::filesystem::current_path().string(), answer_seconds, service::log_folder);
    }
  }
}

msg::Message ask_status() {
  msg::Message reply = ask(
      [](flatbuffers::FlatBufferBuilder& builder) { return msg::Message::body(fbs::CreateStatusRequest(builder)); });
  if (!reply.as<fbs::Status>()) fail("The launcher's answer is not a status: are the programs of one build?");
  return reply;
}

}  // namespace ganymede::cli
