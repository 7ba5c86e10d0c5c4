#include "common/base/run_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "common/base/error.h"

namespace ganymede {
namespace {

struct Ended {
  int code = -1;
  std::string errors;  // what it wrote to stderr
};

/// Runs `body` as the command of a child process whose stdout is `out`.
Ended run_with_stdout(int out, const std::function<int()>& body) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  std::fflush(stdout);
  int child = ::fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_IGN);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(pipe[1], STDERR_FILENO);
    ::_exit(run_command("program: ", body));
  }
  ::close(pipe[1]);
  Ended ended;
  char piece[4096];
  for (ssize_t n; (n = ::read(pipe[0], piece, sizeof piece)) > 0;) ended.errors.append(piece, static_cast<size_t>(n));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

Ended run_into(const char* file, const std::function<int()>& body) {
  int out = ::open(file, O_WRONLY);
  Ended ended = run_with_stdout(out, body);
  ::close(out);
  return ended;
}

int print(std::size_t bytes) {
  fmt::print("{}\n", std::string(bytes, 'x'));
  return 0;
}

TEST(RunCommand, OutputThatCannotBeWrittenIsAFailureOfOneLine) {
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  for (std::size_t bytes : {std::size_t{5}, std::size_t{1} << 20}) {  // less and more than a buffer
    Ended ended = run_into("/dev/full", [&] { return print(bytes); });
    EXPECT_EQ(ended.code, 1);
    EXPECT_EQ(ended.errors, "program: The output cannot be written: No space left on device.\n");
  }
}

TEST(RunCommand, TheFaultOfTheCommandIsSaidBeforeThatOfTheOutput) {
  Ended ended = run_into("/dev/full", []() -> int {
    print(5);
    fail_usage("Nothing of that.");
  });
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.errors, "program: Nothing of that.\n");
}

TEST(RunCommand, AReaderThatWentAwayIsNoFault) {
  for (std::size_t bytes : {std::size_t{5}, std::size_t{1} << 20}) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    ::close(pipe[0]);
    Ended ended = run_with_stdout(pipe[1], [&] { return print(bytes); });
    ::close(pipe[1]);
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.errors, "");
  }
}

/// Of a child whose stderr is `errors` and whose command fails.
int code_of_failure_with_stderr(int errors) {
  std::fflush(stdout);
  int child = ::fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_IGN);
    ::dup2(errors, STDERR_FILENO);
    ::_exit(run_command("program: ", []() -> int { fail_usage("Nothing of that."); }));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(RunCommand, AnErrorThatNobodyCanReadKeepsItsCode) {
  int full = ::open("/dev/full", O_WRONLY);
  EXPECT_EQ(code_of_failure_with_stderr(full), 2);
  ::close(full);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ::close(pipe[0]);
  EXPECT_EQ(code_of_failure_with_stderr(pipe[1]), 2);
  ::close(pipe[1]);
}

TEST(RunCommand, TheCodeOfTheCommandIsReturnedWhenAllIsWell) {
  Ended ended = run_into("/dev/null", [] { return 75; });
  EXPECT_EQ(ended.code, 75);
  EXPECT_EQ(ended.errors, "");
}

TEST(RunCommand, AnErrorIsOneLineWithoutEffectOnATerminalWhateverItNames) {
  Ended ended = run_into("/dev/null", []() -> int { fail_usage("There is no run in {}.", "a\nb\x1b[31m\r/ü"); });
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.errors, "program: There is no run in a\\nb\\x1b[31m\\x0d/ü.\n");
}

TEST(RunCommand, ErrorsOfLibrariesBecomeOneSentence) {
  Ended files = run_into("/dev/null", [] { return static_cast<int>(std::filesystem::file_size("/no/such/file")); });
  EXPECT_EQ(files.code, 1);
  EXPECT_EQ(files.errors, "program: /no/such/file cannot be used: No such file or directory.\n");
  Ended lines = run_into("/dev/null", []() -> int { throw std::runtime_error("one\n#0 two\n#1 three"); });
  EXPECT_EQ(lines.errors, "program: one\n");
  EXPECT_EQ(sentence_of(std::runtime_error("[json.exception.type_error.302] type must be number")),
            "type must be number");
}

}  // namespace
}  // namespace ganymede
