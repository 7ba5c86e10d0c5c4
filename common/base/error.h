#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace ganymede {

/// How a program ends (design: command line).
enum class ExitCode : int {
  done = 0,
  failed = 1,      // one line says what and what to do
  usage = 2,       // wrong usage or configuration
  can_go_on = 75,  // stopped by a signal, preemption or a time limit; the same command goes on
};

/// A fault that ends what the thrower was asked to do. Its text is one sentence for a person: it names the
/// thing, the value and the way out. Thrown inside a process; `main` turns it into one line and an exit code.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// Throws an Error with exit code 1 and the formatted text.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ExitCode::failed, fmt::format(text, std::forward<Args>(args)...));
}

/// Throws an Error with exit code 2 (usage or configuration) and the formatted text.
template <class... Args>
[[noreturn]] void fail_usage(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ExitCode::usage, fmt::format(text, std::forward<Args>(args)...));
}

/// Ends the process at once with a message: for a state that cannot happen. Never returns.
[[noreturn]] void impossible(const char* file, int line, const std::string& text);

/// Holds an invariant of the code (not of input) in every build.
#define GANYMEDE_CHECK(condition, ...)                                                      \
  do {                                                                                      \
    if (!(condition)) ::ganymede::impossible(__FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)

}  // namespace ganymede
