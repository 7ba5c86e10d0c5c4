#pragma once

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "services/checkpoint/part_store.h"

namespace ganymede::checkpoint {

constexpr int killed = 77;

/// Exit code of a child that runs `body`, which returns "" or what went wrong.
inline int in_child(const std::function<std::string()>& body) {
  pid_t child = ::fork();
  if (child == 0) {
    std::string wrong;
    try {
      wrong = body();
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) fmt::print(stderr, "{}\n", wrong);
    ::_exit(wrong.empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Ends the process at the n-th point that is reached (1: the first). Of the many values only every 40th is one.
inline Reached end_at(int n) {
  struct Counts {
    int reached = 0, values = 0;
  };
  return [n, counts = std::make_shared<Counts>()](std::string_view point) {  // copies count together
    bool one_of_many = point == "value" || point == "piece written";
    if (one_of_many && counts->values++ % 40 != 0) return;
    if (++counts->reached == n) ::_exit(killed);
  };
}

}  // namespace ganymede::checkpoint
