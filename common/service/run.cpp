#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/run_command.h"
#include "common/os/files.h"
#include "common/os/signals.h"
#include "common/os/stacks.h"
#include "common/service/heartbeat.h"
#include "common/service/protocol.h"
#include "common/service/running_context.h"
#include "common/service/service.h"
#include "common/service/signal_watch.h"

namespace ganymede::service {
namespace {

constexpr double fatal_report_seconds = 5;

struct Arguments {
  std::string run;
  int rank = -1;
  std::optional<std::uint64_t> epoch;
  std::string stem(Kind kind) const { return service::stem(kind, rank, epoch.value_or(0)); }
};

template <class Number>
bool read_number(std::string_view text, Number& number) {
  auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() && number >= 0;
}

Arguments parse_arguments(Kind kind, int argc, char** argv) {
  Arguments arguments;
  std::string usage = fmt::format("ganymede-{} is started by the launcher, with --run DIR --rank R", name(kind));
  for (int i = 1; i < argc; i += 2) {
    std::string flag = argv[i];
    bool has_epochs = kind == Kind::optimizer && flag == "--epoch";
    if (flag != "--run" && flag != "--rank" && !has_epochs) fail_usage("Unknown argument \"{}\": {}.", flag, usage);
    if (i + 1 == argc) fail_usage("{} needs a value: {}.", flag, usage);
    std::string_view value = argv[i + 1];
    if (flag == "--run") {
      arguments.run = value;
    } else if (flag == "--rank") {
      if (!read_number(value, arguments.rank)) fail_usage("--rank {} is no rank: {}.", value, usage);
    } else if (!read_number(value, arguments.epoch.emplace())) {
      fail_usage("--epoch {} is no state epoch: {}.", value, usage);
    }
  }
  if (arguments.run.empty() || arguments.rank < 0) fail_usage("--run and --rank are needed: {}.", usage);
  return arguments;
}

/// Changes into the run directory and becomes the one process of (service, epoch, rank).
os::Fd enter(Kind kind, const Arguments& arguments) {
  if (::chdir(arguments.run.c_str()) != 0) {
    fail("Run directory {} cannot be entered: {}.", arguments.run, std::strerror(errno));
  }
  std::string self = arguments.stem(kind);
  std::string lock_path = fmt::format("ipc/{}.lock", self);
  auto lock = os::try_lock(lock_path);
  if (!lock) fail("{} of this run is running already; its process holds {}.", self, lock_path);
  log::start(self, fmt::format("logs/{}.log", self), false);
  return std::move(*lock);
}

void serve(Kind kind, const Arguments& arguments, std::atomic<bool>& finishing,
           const std::function<void(Context&)>& body) {
  RunningContext context(kind, arguments.rank, arguments.epoch, finishing);
  SignalWatch signals(
      finishing, [&context] { return context.detail(); }, stacks_file(arguments.stem(kind)));
  register_at_launcher(context);
  Heartbeat heartbeat(context);
  log::info("started, process {}", ::getpid());
  body(context);
}

/// 0, which stands for any job, when job.json cannot be read: that would be so again in the next process.
std::uint64_t job_to_report() {
  try {
    return read_job().id;
  } catch (const Error&) {
    return 0;
  }
}

/// The launcher stops the job with this text. One that does not answer learns of our end by the exit code.
void report_fatal(Kind kind, const Arguments& arguments, int exit_code, const std::string& text) {
  try {
    msg::Client client(launcher_endpoint(), fmt::format("{}.fatal", arguments.stem(kind)), job_to_report());
    client.call(
        [&](flatbuffers::FlatBufferBuilder& builder) {
          return msg::Message::body(fbs::CreateFatalReport(builder, static_cast<fbs::ServiceKind>(kind), arguments.rank,
                                                           exit_code, builder.CreateString(text), ::getpid()));
        },
        Deadline::after_seconds(fatal_report_seconds));
  } catch (const std::exception& error) {
    log::warn("the fault could not be reported to the launcher: {}", error.what());
  }
}

int end_with(Kind kind, const Arguments& arguments, bool finishing, const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  int exit_code = static_cast<int>(ours != nullptr ? ours->code() : ExitCode::failed);
  std::string text = sentence_of(error);
  log::error("{}", text);
  if (!finishing) report_fatal(kind, arguments, exit_code, text);
  log::flush();
  return exit_code;
}

}  // namespace

int run(Kind kind, int argc, char** argv, const std::function<void(Context&)>& body) {
  if (argc == 3 && std::string_view(argv[1]) == "--protocol") return tell_protocol(kind, argv[2]);
  os::block_signals();
  os::install_crash_handler();
  os::prepare_stacks();
  Arguments arguments;
  os::Fd lock;
  try {
    arguments = parse_arguments(kind, argc, argv);
    lock = enter(kind, arguments);
  } catch (const Error& error) {
    log::error("{}", error.what());
    log::flush();
    return static_cast<int>(error.code());
  }
  std::atomic<bool> finishing{false};
  try {
    serve(kind, arguments, finishing, body);
  } catch (const std::exception& error) {
    return end_with(kind, arguments, finishing.load(), error);
  }
  log::info("ended");
  log::flush();
  return static_cast<int>(ExitCode::done);
}

}  // namespace ganymede::service
