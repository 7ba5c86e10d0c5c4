#include "common/base/run_command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>

#include "common/base/error.h"
#include "common/base/printable.h"
#include "common/base/standard_error.h"

namespace ganymede {
namespace {

constexpr int failed = static_cast<int>(ExitCode::failed);

/// How a command ended.
struct End {
  int code = 0;
  std::string text;      // for stderr; empty: nothing to say
  int output_error = 0;  // errno of a write to stdout that failed in it
};

End end_of(const std::function<int()>& body) {
  try {
    return {body(), "", 0};
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), error.what(), 0};
  } catch (const std::system_error& error) {
    int reason = error.code().value();
    if (std::ferror(stdout) != 0) return {reason == EPIPE ? 0 : failed, "", reason};
    return {failed, sentence_of(error), 0};
  } catch (const std::exception& error) {
    return {failed, sentence_of(error), 0};
  }
}

bool is_no_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && system->code() == std::errc::not_enough_memory;
}

bool is_no_thread(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && system->code() == std::errc::resource_unavailable_try_again;
}

}  // namespace

bool is_want_of_resources(const std::exception& error) { return is_no_memory(error) || is_no_thread(error); }

std::string sentence_of(const std::exception& error) {
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return fmt::format("{} cannot be used: {}.", file->path1().string(), file->code().message());
  }
  if (is_no_memory(error)) {
    return "There is not enough memory for that: end other programs, raise the limit (ulimit -v), or ask for less.";
  }
  if (is_no_thread(error)) {
    return "A thread could not be started: raise the limit of processes (ulimit -u) or of memory (ulimit -v).";
  }
  std::string text = error.what();
  if (text.starts_with("[json.exception.")) text.erase(0, text.find("] ") + 2);
  return text.substr(0, text.find('\n'));
}

int run_command(std::string_view prefix, const std::function<int()>& body) {
  End end = end_of(body);
  bool lost = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) != 0) {
    lost = true;
    end.output_error = errno;
  }
  if (lost && end.text.empty() && end.output_error != EPIPE) {
    end.code = failed;
    end.text = fmt::format("The output cannot be written: {}.",
                           end.output_error != 0 ? std::strerror(end.output_error) : "writing to stdout failed");
  }
  if (!end.text.empty()) print_error("{}{}\n", prefix, printable(end.text));
  return end.code;
}

}  // namespace ganymede
