#include "launcher/keeper/sign_of_life.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/os/process_look.h"

namespace ganymede::keeper {
namespace {

constexpr const char* variable = "GANYMEDE_SIGN_OF_LIFE";
constexpr std::uint64_t last_sign = std::uint64_t{1} << 32;
constexpr double stopped_seconds = 5;   // as launch.stall_seconds, which is not known here
constexpr double silence_seconds = 60;  // a launcher may wait for a slow disk
constexpr double clock_gap = 2;         // without a look: this process was stopped itself, and blames nobody

}  // namespace

LauncherLife::LauncherLife() : counter_(::eventfd(0, EFD_NONBLOCK)) {  // inherited
  if (!counter_) fail("The keeper cannot watch its launcher: {}.", std::strerror(errno));
}

std::pair<std::string, std::string> LauncherLife::environment() const {
  return {variable, std::to_string(counter_.get())};
}

void LauncherLife::begin() {
  listen(0);
  stopped_since_.reset();
  heard_.reset();
}

void LauncherLife::listen(double now) {
  std::uint64_t count = 0;
  if (::read(counter_.get(), &count, sizeof count) != sizeof count) return;
  heard_ = count < last_sign ? std::optional(now) : std::nullopt;
}

std::optional<LauncherLife::Fault> LauncherLife::look(int pid, double now) {
  listen(now);
  double gap = now - looked_;
  looked_ = now;
  os::ProcessState state = os::process_state(pid);
  bool forgiven = gap > clock_gap || state == os::ProcessState::traced;
  if (forgiven && stopped_since_) *stopped_since_ += gap;
  if (forgiven && heard_) heard_ = now;
  if (state != os::ProcessState::stopped) stopped_since_.reset();
  if (state == os::ProcessState::stopped && !stopped_since_) stopped_since_ = now;
  auto fault = [now](double since, const char* what) {
    return Fault{since, fmt::format("{} for {}", what, human_seconds(now - since))};
  };
  if (stopped_since_ && now - *stopped_since_ >= stopped_seconds)
    return fault(*stopped_since_, "it was stopped by a signal");
  if (heard_ && now - *heard_ >= silence_seconds) return fault(*heard_, "it gave no sign of life");
  return std::nullopt;
}

SignOfLife::SignOfLife() {
  const char* number = std::getenv(variable);
  if (number == nullptr) return;
  std::error_code error;
  auto what = std::filesystem::read_symlink(std::string("/proc/self/fd/") + number, error);
  if (error || what.string().find("eventfd") == std::string::npos) return;  // somebody else's
  counter_ = os::Fd(std::atoi(number));
  ::unsetenv(variable);  // once this is closed, the number is another descriptor's
  ::fcntl(counter_.get(), F_SETFD, FD_CLOEXEC);
}

void SignOfLife::end() const { add(last_sign); }

void SignOfLife::add(std::uint64_t count) const {
  if (!counter_) return;
  auto ignored = ::write(counter_.get(), &count, sizeof count);
  static_cast<void>(ignored);
}

}  // namespace ganymede::keeper
