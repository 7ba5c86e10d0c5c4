#include "launcher/supervisor/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/error.h"

namespace ganymede::launcher {

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&set, number);
  fd_ = os::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) fail("Signals cannot be received: {}.", std::strerror(errno));
}

int Signals::take() {
  signalfd_siginfo info{};
  return read(fd_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

void Signals::watch(boost::asio::io_context& io, std::function<void(int)> handle) {
  handle_ = std::move(handle);
  descriptor_ = std::make_unique<boost::asio::posix::stream_descriptor>(io, fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  wait();
}

void Signals::wait() {
  descriptor_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [this](const boost::system::error_code& error) {
                            if (error) return;
                            while (int number = take()) handle_(number);
                            if (descriptor_) wait();
                          });
}

bool means_stop(int number) { return number == SIGINT || number == SIGTERM || number == SIGUSR2; }

void stop_if_signalled(Signals& signals) {
  if (means_stop(signals.take())) throw Error(ExitCode::can_go_on, stopped_text);
}

}  // namespace ganymede::launcher
