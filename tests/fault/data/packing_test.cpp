#include <signal.h>

#include <thread>

#include "common/base/deadline.h"
#include "common/os/process.h"
#include "services/data/dataset.h"
#include "tests/support/tree.h"
#include "tests/unit/data/workspace.h"

/// `ganymede-data pack` as a process that is killed, stopped, starved or started twice.
namespace ganymede::data {
namespace {

class PackingProcess : public Workspace {
 protected:
  /// Enough text that training a tokenizer takes a while.
  void write_much_text() {
    std::string text;
    for (std::uint64_t i = 0; text.size() < 700'000; ++i) {
      auto bits = philox(3, 0, i);
      text += fmt::format("{:x} = call_{:x}(argument, {:x})\n", bits[0], bits[1] % 65536, bits[2]);
    }
    write("text/much.txt", text);
    write("text/more.txt", text.substr(0, 1000));
  }

  os::Child start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {GANYMEDE_BINARY_DIR "/ganymede-data", "pack"});
    return os::spawn({.arguments = std::move(arguments), .environment = {}, .output_file = path("output")});
  }
  os::Child start_training() { return start({path("text"), "--to", path("set"), "--train-tokenizer", "2000"}); }

  static os::Ending end_of(const os::Child& child) {
    Deadline deadline = Deadline::after_seconds(60);
    while (!deadline.passed()) {
      if (auto ending = os::poll_ending(child)) return *ending;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    os::send_signal(child, SIGKILL);
    ADD_FAILURE() << "the process did not end";
    return {};
  }

  void wait_for_draft() {
    Deadline deadline = Deadline::after_seconds(30);
    while (!std::filesystem::exists(path(".set.packing")) && !deadline.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(std::filesystem::exists(path(".set.packing")));
  }

  std::string output() const { return os::read_file(path("output")); }
  void expect_nothing_left() const {
    EXPECT_FALSE(std::filesystem::exists(path("set")));
    EXPECT_FALSE(std::filesystem::exists(path(".set.packing")));
  }
};

TEST_F(PackingProcess, KilledOneLeavesNoDatasetAndTheNextOneSucceeds) {
  write_much_text();
  for (int delay_ms : {0, 20, 100, 300}) {
    os::Child child = start_training();
    wait_for_draft();
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    os::send_signal(child, SIGKILL);
    EXPECT_EQ(end_of(child).signal, SIGKILL);
    EXPECT_FALSE(std::filesystem::exists(path("set")));
  }
  EXPECT_EQ(end_of(start({path("text"), "--to", path("set")})).exit_code, 0) << output();
  Dataset(path("set")).verify();
  EXPECT_FALSE(std::filesystem::exists(path(".set.packing")));
}

TEST_F(PackingProcess, StoppedOneCleansUpAndSaysHowToGoOn) {
  write_much_text();
  os::Child child = start_training();
  wait_for_draft();
  os::send_signal(child, SIGTERM);
  EXPECT_EQ(end_of(child).exit_code, static_cast<int>(ExitCode::can_go_on)) << output();
  EXPECT_NE(output().find("same command starts again"), std::string::npos) << output();
  expect_nothing_left();
}

TEST_F(PackingProcess, FullDiskIsOneErrorAndLeavesNothing) {
  write_documents(50);
  write("text/long.txt", std::string(200'000, 'x'));
  for (int blocks : {0, 1, 100, 400}) {  // of 512 bytes: fails at the first write, or in the middle
    // The pipe keeps the message itself out of reach of the limit.
    std::string command =
        fmt::format("set -o pipefail; (ulimit -f {}; exec {}/ganymede-data pack {} --to {}) 2>&1 | cat > {}", blocks,
                    GANYMEDE_BINARY_DIR, path("text"), path("set"), path("said"));
    os::Child child = os::spawn({.arguments = {"/bin/bash", "-c", command}, .environment = {}, .output_file = ""});
    EXPECT_EQ(end_of(child).exit_code, 1);
    std::string said = os::read_file(path("said"));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_NE(said.find("File too large"), std::string::npos) << said;
    expect_nothing_left();
  }
}

TEST_F(PackingProcess, SecondOneIsRefusedWhileTheFirstWorks) {
  write_much_text();
  os::Child first = start_training();
  wait_for_draft();
  os::Child second = start({path("text"), "--to", path("set")});
  EXPECT_EQ(end_of(second).exit_code, 1);
  EXPECT_NE(output().find("Another process is packing"), std::string::npos) << output();
  EXPECT_EQ(end_of(first).exit_code, 0) << output();
  Dataset(path("set")).verify();
}

TEST_F(PackingProcess, TwoRunsThatNeedTheSameDatasetShareIt) {
  write_much_text();
  std::string recipe = write("recipe.toml", fmt::format("[data]\npath = \"{}\"\nsources = [\"{}\"]\nextensions = "
                                                        "[\".txt\"]\ntokenizer = \"train:2000\"\n\n[model]\n"
                                                        "vocabulary = 2000\n",
                                                        path("set"), path("text")));
  os::Child first = start({"--config", recipe});
  os::Child second = start({"--config", recipe});
  EXPECT_EQ(end_of(first).exit_code, 0) << output();
  EXPECT_EQ(end_of(second).exit_code, 0) << output();
  EXPECT_NE(output().find("is packed already"), std::string::npos) << output();
  Dataset(path("set")).verify();
  std::string other = write("other.toml", os::read_file(recipe) + "\n[run]\nseed = 2\n");
  EXPECT_EQ(end_of(start({"--config", other})).exit_code, 0) << "a dataset may be used with another seed";
  std::string bytes =
      write("bytes.toml", fmt::format("[data]\npath = \"{}\"\nsources = [\"{}\"]\n", path("set"), path("text")));
  EXPECT_EQ(end_of(start({"--config", bytes})).exit_code, 2) << "but not with another tokenizer";
}

}  // namespace
}  // namespace ganymede::data
