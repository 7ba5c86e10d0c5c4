#pragma once

#include <functional>

namespace ganymede::os {

/// In `main` before any thread: blocks SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 in all threads, ignores SIGPIPE.
void block_signals();
/// Waits up to `timeout_ms` for one of the first three; 0 when none came. SIGUSR2 is a batch system's warning to a
/// run: a launcher follows it, other processes take no notice. One thread calls this.
int wait_signal(int timeout_ms);
/// Installs a handler for crashes (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) that writes signal name and a stack to
/// stderr, calls nothing that is not async-signal-safe, and lets the default action end the process.
void install_crash_handler();

}  // namespace ganymede::os
