#include "common/base/run_command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>

#include "common/base/error.h"

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
  } catch (const std::filesystem::filesystem_error& error) {
    return {failed, fmt::format("{} cannot be used: {}.", error.path1().string(), error.code().message()), 0};
  } catch (const std::bad_alloc&) {
    return {failed, "There is not enough memory for that: end other programs, or ask for less.", 0};
  } catch (const std::system_error& error) {
    int reason = error.code().value();
    if (std::ferror(stdout) != 0) return {reason == EPIPE ? 0 : failed, "", reason};
    return {failed, error.what(), 0};
  } catch (const std::exception& error) {
    return {failed, error.what(), 0};
  }
}

}  // namespace

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
  // Some libraries put a stack behind the first line.
  if (!end.text.empty()) fmt::print(stderr, "{}{}\n", prefix, end.text.substr(0, end.text.find('\n')));
  return end.code;
}

}  // namespace ganymede
