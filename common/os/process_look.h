#pragma once

#include <optional>
#include <string_view>
#include <vector>

/// What the kernel tells of a process from outside (/proc).
namespace ganymede::os {

enum class ProcessState {
  gone,
  lives,
  stopped,  // by SIGSTOP or job control
  traced,   // held by a debugger
};

ProcessState process_state(int pid);

/// Whether it stands still by SIGSTOP, by job control or in a debugger. False for one that is not there.
inline bool is_stopped(int pid) {
  ProcessState state = process_state(pid);
  return state == ProcessState::stopped || state == ProcessState::traced;
}

struct ThreadStates {
  int running = 0;         // compute, or would if they got a core
  int blocked = 0;         // in the kernel, for a disk, a file system or memory, or by a debugger
  double cpu_seconds = 0;  // that they have used, all together
};

/// Of the threads of a process whose names begin with none of `except`. Nothing when it is gone.
std::optional<ThreadStates> thread_states(int pid, const std::vector<std::string_view>& except);

}  // namespace ganymede::os
