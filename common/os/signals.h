#pragma once

#include <functional>

namespace ganymede::os {

/// In `main` before any thread: blocks SIGINT, SIGTERM, SIGUSR1 in all threads, ignores SIGPIPE.
void block_signals();
/// Waits up to `timeout_ms` for one of them; 0 when none came. One thread calls this.
int wait_signal(int timeout_ms);
/// Installs a handler for crashes (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) that writes signal name and a stack to
/// stderr, calls nothing that is not async-signal-safe, and lets the default action end the process.
void install_crash_handler();

}  // namespace ganymede::os
