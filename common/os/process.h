#pragma once

#include "common/base/deadline.h"
#include "common/os/fd.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::os {

struct Command {
  std::vector<std::string> arguments;                            // arguments[0] is the program's path
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's own
  std::string output_file;        // stdout and stderr are appended to it; empty: inherited
  bool own_process_group = true;  // Ctrl-C of the terminal does not reach it
  bool die_with_parent = true;    // SIGKILL when the parent thread's process ends
};

/// How a process ended.
struct Ending {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  std::string describe() const;  // "exit code 3", "killed by SIGKILL"
};

/// A child process held by its pidfd, so that its id cannot be confused with another's.
struct Child {
  int pid = -1;
  Fd pidfd;
};

/// Starts it. Throws Error naming the program when it cannot be started.
Child spawn(const Command& command);
/// Sends a signal through the pidfd; nothing happens when the process has ended.
void send_signal(const Child& child, int signal);
/// How it ended if it has (and reaps it), else nothing.
std::optional<Ending> poll_ending(const Child& child);
/// Waits for its end and reaps it; at the deadline it is killed. Nothing: it had to be.
std::optional<Ending> await_ending(const Child& child, const Deadline& deadline);

/// Folder of this program's file, where its siblings lie.
std::string program_folder();

}  // namespace ganymede::os
