#include "common/base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "common/base/error.h"

namespace ganymede {
namespace {

namespace fs = std::filesystem;

class Log : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ganymede_log_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    file = folder / "service.log";
  }
  void TearDown() override { fs::remove_all(folder); }

  std::vector<std::string> lines() const {
    std::ifstream stream(file);
    std::vector<std::string> all;
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
  }

  fs::path folder, file;
};

TEST_F(Log, LineHasLevelNameAndTextAndStaysOneLine) {
  log::start("optimizer.1", file, false);
  log::info("step {} of {}", 3, 10);
  log::debug("not this");
  log::error("first\nsecond\n");
  auto written = lines();  // no flush: each line is handed to the kernel at once
  ASSERT_EQ(written.size(), 2u);
  EXPECT_NE(written[0].find(" info optimizer.1: step 3 of 10"), std::string::npos) << written[0];
  EXPECT_NE(written[1].find(" error optimizer.1: first\\nsecond"), std::string::npos) << written[1];
}

TEST_F(Log, BracesInTextAreText) {
  log::start("a", file, false);
  log::write(log::Level::info, "{} {0} %v {");
  EXPECT_NE(lines().at(0).find("{} {0} %v {"), std::string::npos);
}

TEST_F(Log, StartAppends) {
  log::start("a", file, false);
  log::info("one");
  log::start("b", file, false);
  log::info("two");
  EXPECT_EQ(lines().size(), 2u);
}

TEST_F(Log, LastLinesAreTheLatestOldestFirst) {
  log::start("a", file, false);
  for (int i = 0; i < 100; ++i) log::info("line {}", i);
  EXPECT_EQ(log::last_lines(2), (std::vector<std::string>{"line 98", "line 99"}));
  EXPECT_EQ(log::last_lines(1000).size(), 64u);
  EXPECT_TRUE(log::last_lines(0).empty());
}

TEST_F(Log, ThreadsDoNotTearLines) {
  log::start("a", file, false);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 250; ++i) log::info("{}", std::string(100, 'x'));
    });
  }
  for (auto& thread : threads) thread.join();
  auto written = lines();
  EXPECT_EQ(written.size(), 1000u);
  for (const auto& line : written) EXPECT_TRUE(line.ends_with(": " + std::string(100, 'x'))) << line;
}

TEST_F(Log, FileThatCannotBeOpenedIsAnErrorThatNamesIt) {
  std::string bad = (folder / "service.log" / "x").string();
  std::ofstream(file) << "a file, not a folder";
  try {
    log::start("a", bad, false);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::failed);
    EXPECT_NE(std::string(e.what()).find(bad), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ganymede
