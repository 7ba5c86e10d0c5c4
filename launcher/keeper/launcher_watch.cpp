#include "launcher/keeper/launcher_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "common/base/error.h"
#include "common/base/log.h"
#include "launcher/keeper/ended_launcher.h"
#include "launcher/keeper/leftovers.h"
#include "launcher/keeper/stop_order.h"

namespace ganymede::keeper {
namespace {

constexpr std::size_t most_crashes = 5;
constexpr auto crash_window = std::chrono::seconds(60);
constexpr auto first_pause = std::chrono::milliseconds(100);
constexpr int look_up_milliseconds = 200;
constexpr double stop_now_seconds = 10;  // a launcher that works needs less than one

bool ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

os::Fd open_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  if (!ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return os::Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

LauncherWatch::LauncherWatch(std::vector<std::string> command, SegmentServer& server)
    : server_(server), signals_(open_signals()) {
  command_.arguments = std::move(command);
  if (!signals_ || ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    fail("The keeper cannot watch its processes: {}.", std::strerror(errno));
  }
}

int LauncherWatch::run() {
  while (true) {
    command_.environment.push_back(life_.environment());
    life_.begin();
    fault_.reset();
    os::Ending ending = tend(os::spawn(command_));
    double now = now_seconds();
    command_.environment = {tell_of(
        {.ended = now, .detect = fault_ ? now - fault_->since : 0, .cause = fault_ ? fault_->why : ending.describe()})};
    end_leftovers();
    if (auto code = final_code(ending)) return *code;
    back_off(ending);
  }
}

os::Ending LauncherWatch::tend(const os::Child& launcher) {
  while (true) {
    pollfd events[] = {{signals_.get(), POLLIN, 0}, {launcher.pidfd.get(), POLLIN, 0}, {server_.fd(), POLLIN, 0}};
    ::poll(events, 3, look_up_milliseconds);
    server_.serve();
    forward_signals(launcher);
    if (auto ending = os::poll_ending(launcher)) return *ending;
    end_mute(launcher);
    end_lifeless(launcher);
    reap_all_but(launcher.pid);
  }
}

void LauncherWatch::forward_signals(const os::Child& launcher) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (signal == SIGHUP) signal = SIGTERM;
    if (signal == SIGINT) ++interrupts_;
    if (signal != SIGUSR1) {
      stop_signal_ = signal;
      note_stop_order(interrupts_ > 1 ? StopOrder::now : StopOrder::after_step);
      if (interrupts_ > 1 && !must_end_) must_end_ = Deadline::after_seconds(stop_now_seconds);
    }
    os::send_signal(launcher, signal);
  }
}

/// A launcher that was told to end at once and does not (it hangs, or somebody has stopped it) is killed.
void LauncherWatch::end_mute(const os::Child& launcher) {
  if (!must_end_ || !must_end_->passed()) return;
  log::warn("The launcher did not end within {} seconds: it is killed.", stop_now_seconds);
  stop_signal_ = SIGKILL;
  must_end_.reset();
  os::send_signal(launcher, SIGKILL);
}

void LauncherWatch::end_lifeless(const os::Child& launcher) {
  auto fault = life_.look(launcher.pid, now_seconds());
  if (!fault || fault_) return;
  fault_ = fault;
  log::warn("The launcher is killed: {}.", fault->why);
  os::send_signal(launcher, SIGKILL);
}

/// A launcher that a forwarded signal ended before it could handle signals was stopped, not broken.
std::optional<int> LauncherWatch::final_code(const os::Ending& ending) const {
  for (ExitCode code : {ExitCode::done, ExitCode::failed, ExitCode::usage, ExitCode::can_go_on}) {
    if (ending.exit_code == static_cast<int>(code)) return ending.exit_code;
  }
  if (stop_signal_ != 0 && ending.signal == stop_signal_) return static_cast<int>(ExitCode::can_go_on);
  return std::nullopt;
}

void LauncherWatch::back_off(const os::Ending& ending) {
  auto now = Clock::now();
  crashes_.push_back(now);
  while (now - crashes_.front() > crash_window) crashes_.pop_front();
  if (crashes_.size() >= most_crashes) {
    fail("The launcher ended {} times within a minute ({} at last): see logs/launcher.log.", crashes_.size(),
         ending.describe());
  }
  bool ends = read_stop_order() != StopOrder::none;
  log::warn("The launcher ended ({}); it is started again {}.", ending.describe(),
            ends ? "to end the run" : "and the run goes on from memory");
  std::this_thread::sleep_for(first_pause * (1 << (crashes_.size() - 1)));
}

}  // namespace ganymede::keeper
