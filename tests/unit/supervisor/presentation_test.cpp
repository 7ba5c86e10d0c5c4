#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "launcher/supervisor/closing.h"
#include "launcher/supervisor/host_budget.h"
#include "launcher/supervisor/log_tail.h"
#include "launcher/supervisor/terminal.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

HostBudget two_cells() {
  HostBudget budget;
  budget.cells = 2;
  budget.rows = {{"control", 2u << 20}, {"master", 512u << 20}, {"worker process", 320u << 20}};
  budget.available = 4ull << 30;
  return budget;
}

std::vector<os::MemoryHolder> nobody() { return {}; }

TEST(HostBudget, TableIsAlignedAndSumsUp) {
  std::string text = table(two_cells());
  EXPECT_EQ(text,
            "host memory       per cell     2 cells\n"
            "control              2 MiB       4 MiB\n"
            "master             512 MiB       1 GiB\n"
            "worker process     320 MiB     640 MiB\n"
            "needed             834 MiB    1.63 GiB\n"
            "available                        4 GiB");
  std::vector<std::string> lines = table_lines(two_cells());  // a log line each
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[1], "control              2 MiB       4 MiB");
}

TEST(HostBudget, IsOneLineUnlessItIsTight) {
  HostBudget budget = two_cells();
  EXPECT_EQ(summary(budget), "host memory: 1.63 GiB needed by 2 cells, 4 GiB available");
  EXPECT_FALSE(tight(budget));
  budget.available = 2ull << 30;
  EXPECT_TRUE(tight(budget));
}

TEST(HostBudget, WhatFitsExactlyIsTaken) {
  HostBudget budget = two_cells();
  budget.available = budget.needed();
  EXPECT_NO_THROW(require_fit(budget, nobody));
  budget.available -= 1;
  EXPECT_THROW(require_fit(budget, nobody), Error);
}

TEST(HostBudget, RefusalNamesNumbersTheLargestPartsAndTheWayOut) {
  HostBudget budget = two_cells();
  budget.available = 1u << 30;
  budget.limited = true;
  try {
    require_fit(budget, nobody);
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    for (const char* part : {"1.63 GiB", "834 MiB", "master 512 MiB", "worker process 320 MiB", "1 GiB",
                             "launch.host_memory_limit_gib", "parallel.ranks"})
      EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(ShellWord, QuotesWhatTheShellWouldChange) {
  EXPECT_EQ(shell_word("runs/a-1.toml"), "runs/a-1.toml");
  EXPECT_EQ(shell_word("def f(x): "), "'def f(x): '");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Closing, NamesTheCheckpointAndThreeCommands) {
  config::Config config;
  config.run.steps = 50;
  config.sample.prompt = "def ";
  Options options{.run = "/r/runs/tiny", .recipe = "/r/tiny.toml", .from = "", .settings = {}};
  std::string done =
      closing_lines({.step = 50, .steps = 50, .loss = 2.5, .validation_loss = 2.25, .checkpoint = 50, .seconds = 60},
                    config, options, "/bin");
  for (const char* part :
       {"done at step 50/50", "validation loss 2.25", "/r/runs/tiny/checkpoint",
        "/bin/ganymede generate /r/runs/tiny --prompt 'def '", "/bin/ganymede ctl /r/runs/tiny status",
        "/bin/ganymede train /r/tiny.toml --run /r/runs/tiny --steps 100"})
    EXPECT_THAT(done, HasSubstr(part));
  EXPECT_THAT(done, Not(HasSubstr("go on with:")));
  std::string stopped = closing_lines({.step = 7, .steps = 50, .loss = 2.5, .checkpoint = 5}, config, options, "/bin");
  EXPECT_THAT(stopped, HasSubstr("stopped at step 7/50"));
  EXPECT_THAT(stopped, HasSubstr("go on with: /bin/ganymede train /r/tiny.toml --run /r/runs/tiny --steps 50"));
  EXPECT_EQ(stopped.find(" train "), stopped.rfind(" train ")) << "the command is there once:\n" << stopped;
  EXPECT_THAT(stopped, HasSubstr("checkpoint: step 5 in"));
  std::string killed = closing_lines({.step = 0, .steps = 50}, config, options, "/bin");
  EXPECT_THAT(killed, HasSubstr("stopped at step 0/50"));
  EXPECT_THAT(killed, Not(HasSubstr("checkpoint:")));
}

TEST(Closing, SaysThatARunWithoutACheckpointBeginsAgain) {
  config::Config config;
  Options options{.run = "/r/run", .recipe = "/r/tiny.toml", .from = "", .settings = {}};
  EXPECT_THAT(closing_lines({.step = 2, .steps = 50}, config, options, "/bin"),
              HasSubstr("\nno checkpoint was written: it begins again at step 0\ngo on with: "));
  EXPECT_THAT(closing_lines({.step = 2, .steps = 50, .checkpoint = 1}, config, options, "/bin"),
              Not(HasSubstr("begins again")));
}

TEST(Closing, ProposesTheStepsOfTheRecipeWhereTheyAreMore) {
  config::Config config;
  Options options{.run = "/r/run", .recipe = "/r/tiny.toml", .from = "", .settings = {"run.steps=3"}};
  EXPECT_THAT(closing_lines({.step = 3, .steps = 3, .checkpoint = 3, .recipe_steps = 50}, config, options, "/bin"),
              HasSubstr(" --steps 50"));
  EXPECT_EQ(more_steps(7, 50), 50u);
  EXPECT_EQ(more_steps(50, 50), 100u);
  EXPECT_EQ(more_steps(50, 0), 100u) << "not known";
}

TEST(Closing, GoesOnWithWhatTheUserSet) {
  config::Config config;
  Options options{.run = "/r/run", .recipe = "/r/tiny.toml", .from = "", .settings = {}};
  options.settings = {"parallel.ranks=2",
                      "parallel.ranks=4",
                      "run.steps=7",
                      "data.path=mine",
                      "sample.prompt=\"a b\"",
                      "data.path=\"/r/mine\"",
                      "optimizer.plugin_folder=\"/x\""};
  std::string text = closing_lines({.step = 7, .steps = 50, .checkpoint = 5}, config, options, "/bin");
  EXPECT_THAT(text,
              HasSubstr("--steps 100 --set parallel.ranks=4 --set data.path=mine --set 'sample.prompt=\"a b\"'\n"));
}

TEST(Closing, RunWithoutACheckpointOfItsOwnBeginsAgainFromTheOther) {
  config::Config config;
  config.run.steps = 50;
  Options options{.run = "/r/run", .recipe = "/r/tiny.toml", .from = "/r/the base", .settings = {}};
  std::string stopped = closing_lines({.step = 0, .steps = 50, .load_step = 30}, config, options, "/bin");
  EXPECT_THAT(stopped, HasSubstr("stopped at step 30/50"));
  EXPECT_THAT(stopped, HasSubstr("--run /r/run --from '/r/the base' --steps 50"));
  stopped = closing_lines({.step = 40, .steps = 50, .load_step = 30, .checkpoint = 40}, config, options, "/bin");
  EXPECT_THAT(stopped, HasSubstr("stopped at step 40/50"));
  EXPECT_THAT(stopped, Not(HasSubstr("--from"))) << "it goes on from its own";
}

TEST(Closing, NamesTheLastOfAPathThatTheUserGaveTwice) {
  config::Config config;
  Options options{.run = "/r/run", .recipe = "/r/tiny.toml", .from = "", .settings = {}};
  options.settings = {"data.path=first", "data.tokenizer=\"/t\"", "data.path=last", "data.tokenizer=bytes",
                      "data.path=\"/r/last\""};
  std::string text = closing_lines({.step = 7, .steps = 50, .checkpoint = 5}, config, options, "/bin");
  EXPECT_THAT(text, HasSubstr("--steps 100 --set data.path=last --set data.tokenizer=bytes\n"));
}

TEST(Closing, KeepsATokenizerThatIsNoFile) {
  config::Config config;
  Options options{.run = "/r/run", .recipe = "/r/tiny.toml", .from = "", .settings = {}};
  options.settings = {"data.tokenizer=train:1024", "data.sources=[]", "data.path=\"/r/mine\""};
  std::string text = closing_lines({.step = 7, .steps = 50, .checkpoint = 5}, config, options, "/bin");
  EXPECT_THAT(text, HasSubstr("--steps 100 --set data.tokenizer=train:1024 --set 'data.sources=[]'\n"));
}

TEST(CheckpointFailure, NamesStepFolderAndWayOutOnce) {
  std::string full = "The checkpoint of step 5 cannot be written: there is no space left on the disk.";
  EXPECT_EQ(
      checkpoint_failure(5, 1, full, "/r/run", false),
      full + " It is the part of rank 1, in /r/run/checkpoint; training goes on, and the next checkpoint tries again.");
  EXPECT_EQ(
      checkpoint_failure(5, 0, "No answer.", "/r/run", true),
      "The checkpoint of step 5 failed: No answer. It is the part of rank 0, in /r/run/checkpoint; mend this (make "
      "room), and the same command goes on from the checkpoint before.");
}

/// What the launcher says when `ganymede-worker generate` is this shell script.
std::string sample_said(const std::string& script) {
  test::TemporaryFolder folder;
  std::string worker = folder.path() + "/ganymede-worker";
  std::ofstream(worker) << "#!/bin/sh\n" << script << "\n";
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  config::Config config;
  config.sample.prompt = "def ";
  config.sample.tokens = 9;
  Options options{.run = folder.path(), .recipe = "/r/tiny.toml", .from = "", .settings = {}};
  Signals signals;
  Terminal terminal(ends[1], false);
  show_sample(config, options, folder.path(), signals, terminal);
  close(ends[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(read(ends[0], text.data(), text.size())));
  close(ends[0]);
  return text;
}

TEST(Sample, OneThatIsCutShortGetsALineEndBeforeTheReason) {
  EXPECT_EQ(sample_said("printf 'def f'; kill -9 $$"),
            "sample of 9 tokens:\n\nthe sample ends here: killed by SIGKILL\n");
  EXPECT_EQ(sample_said("echo 'def f'; exit 3"), "sample of 9 tokens:\nno sample could be generated (exit code 3)\n");
  EXPECT_EQ(sample_said("echo 'def f'"), "sample of 9 tokens:\n");
}

TEST(Sample, RunThatIsStoppedInItsSampleIsDone) {
  sigset_t before, stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &stop, &before), 0);
  EXPECT_EQ(sample_said("printf 'def f'; kill -TERM $PPID; exec sleep 100"),
            "sample of 9 tokens:\n\nthe sample ends here: stopped by a signal\n");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(LogTail, KeepsTheLastLinesThatSaySomething) {
  EXPECT_EQ(last_lines("a\nb\n\n  \nc\n", 2), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(last_lines("a", 2), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(last_lines("", 2).empty());
}

TEST(LogTail, ShowsACrashWithItsStackFromTheStart) {
  std::string stack;
  for (int i = 0; i < 50; ++i) stack += "frame\n";
  auto lines = last_words("noise\ncrashed by SIGBUS, stack:\nold\ncrashed by SIGSEGV, stack:\n" + stack, 3);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front(), "crashed by SIGSEGV, stack:");
  EXPECT_GT(lines.size(), 20u);
  EXPECT_LT(lines.size(), 40u);
  EXPECT_EQ(last_words("a\nb\n", 1), (std::vector<std::string>{"b"}));
}

/// What a terminal wrote.
std::string written(bool interactive, void (*use)(Terminal&)) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  {
    Terminal terminal(ends[1], interactive);
    use(terminal);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  ssize_t count = read(ends[0], text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  close(ends[0]);
  return text;
}

TEST(Terminal, PipedOutputHasWholeLinesWithoutControlCharacters) {
  EXPECT_EQ(written(false,
                    [](Terminal& terminal) {
                      terminal.line("one");
                      terminal.live("step 1");
                      terminal.line("two");
                    }),
            "one\ntwo\n");
}

TEST(Terminal, LiveLineStaysBelowPermanentOnes) {
  EXPECT_EQ(written(true,
                    [](Terminal& terminal) {
                      terminal.live("step 1");
                      terminal.line("note");
                      terminal.live("step 2");
                    }),
            "\r\x1b[Kstep 1\r\x1b[Knote\nstep 1\r\x1b[Kstep 2\n");
}

TEST(Terminal, LiveLineLosesWholeFieldsThatDoNotFitButNotTheFirstFour) {
  std::string shown = written(true, [](Terminal& terminal) {  // 80 columns, as it is no real terminal
    terminal.live("step 120/2000 | loss 3.281 | norm 1.46 | lr 3.0e-4 | 812 ms | 5,043 tok/s | eta 25 min | mfu 41%");
  });
  EXPECT_EQ(shown, "\r\x1b[Kstep 120/2000 | loss 3.281 | norm 1.46 | lr 3.0e-4 | 812 ms | 5,043 tok/s\n");
  shown = written(true, [](Terminal& terminal) { terminal.live("a | b | c | " + std::string(90, 'd') + " | e"); });
  EXPECT_EQ(shown, "\r\x1b[Ka | b | c | " + std::string(67, 'd') + "\n");
}

TEST(Terminal, ReaderThatWentAwayIsNoFault) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  Terminal terminal(ends[1], false);
  terminal.line("nobody reads this");
  close(ends[1]);
}

}  // namespace
}  // namespace ganymede::launcher
