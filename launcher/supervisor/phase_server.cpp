#include "launcher/supervisor/phase_server.h"

#include <signal.h>
#include <unistd.h>

#include <limits>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/service/run_directory.h"
#include "launcher/keeper/stop_order.h"

namespace ganymede::launcher {

using flatbuffers::FlatBufferBuilder;
using msg::Message;

PhaseServer::PhaseServer(const std::string& run, const std::string& state, const std::string& phase)
    : run_(run),
      state_(state),
      phase_(phase),
      first_(state == "recovering"),
      server_(fmt::format("ipc://{}", service::launcher_socket),
              [this](const std::string&, const Message& request) { return answer(request); }) {}

void PhaseServer::enter(const std::string& phase) {
  std::lock_guard lock(mutex_);
  phase_ = phase;
  first_ = false;
}

Message PhaseServer::status(const Message& request, const std::string& phase) const {
  return Message::build(0, request.envelope().id(), [&](FlatBufferBuilder& builder) {
    auto run = builder.CreateString(run_);
    auto state = builder.CreateString(state_);
    auto cells = builder.CreateVector(std::vector<flatbuffers::Offset<fbs::CellStatus>>{});
    auto launchers = builder.CreateVector(std::vector<flatbuffers::Offset<fbs::LauncherStatus>>{});
    auto detail = builder.CreateString(phase);
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    return Message::body(fbs::CreateStatus(builder, run, 0, 0, 0, state, cells, launchers, unknown, 0, -1, detail));
  });
}

Message PhaseServer::answer(const Message& request) {
  std::string phase;
  bool first = true;
  {
    std::lock_guard lock(mutex_);
    phase = phase_;
    first = first_;
  }
  if (request.as<fbs::StatusRequest>()) return status(request, phase);
  if (const auto* stop = request.as<fbs::StopRequest>()) {
    log::info("a stop was ordered while the launcher was {}", phase);
    keeper::note_stop_order(stop->now() ? keeper::StopOrder::now : keeper::StopOrder::after_step);
    ::kill(::getpid(), SIGTERM);
    return msg::ack(request);
  }
  throw Error(first ? ExitCode::can_go_on : ExitCode::failed,
              fmt::format("The run has no services now, its launcher is {}: ask again when it trains.", phase));
}

}  // namespace ganymede::launcher
