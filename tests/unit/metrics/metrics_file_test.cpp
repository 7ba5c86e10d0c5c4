#include "common/metrics/metrics_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "common/base/error.h"
#include "common/os/files.h"

namespace ganymede::metrics {
namespace {

class Metrics : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ganymede_metrics_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    file = folder + "/metrics.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  static Record step(int number) { return Record().set("step", number).set("loss", 1.0 / number); }
  std::string content() const { return os::read_file(file); }
  void write_raw(const std::string& text) const { std::ofstream(file, std::ios::binary | std::ios::app) << text; }

  std::string folder, file;
};

TEST(MetricsRecord, DoublesReadBackWithTheSameBits) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    auto object = nlohmann::json::parse(Record().set("x", value).json());
    ASSERT_EQ(std::bit_cast<std::uint64_t>(object["x"].get<double>()), std::bit_cast<std::uint64_t>(value));
  }
}

TEST(MetricsRecord, IsValidJsonWhateverGoesIn) {
  double infinity = std::numeric_limits<double>::infinity();
  Record record;
  record.set("step", 3).set("nan", std::nan("")).set("inf", -infinity).set("big", ~std::uint64_t{0});
  record.set("text", "say \"hi\"\n\xff").set("on", true).set("list", std::vector<double>{1, infinity});
  record.set("lanes", std::vector<std::pair<std::string, double>>{{"compute \"1\"", 0.1}, {"gather", 2}});
  auto object = nlohmann::json::parse(record.json());
  EXPECT_TRUE(object["nan"].is_null());
  EXPECT_TRUE(object["inf"].is_null());
  EXPECT_EQ(object["big"], ~std::uint64_t{0});
  EXPECT_EQ(object["on"], true);
  EXPECT_EQ(object["list"][0], 1);
  EXPECT_TRUE(object["list"][1].is_null());
  EXPECT_EQ(object["lanes"]["compute \"1\""], 0.1);
  EXPECT_EQ(record.json().find('\n'), std::string::npos);
  EXPECT_EQ(Record().json(), "{}");
}

TEST_F(Metrics, LinesAreAppendedAcrossOpens) {
  EXPECT_EQ(MetricsFile(file).last_step(), -1);
  MetricsFile(file).append(step(1));
  MetricsFile again(file);
  again.append(step(2));
  EXPECT_EQ(again.last_step(), 2);
  EXPECT_EQ(content(), step(1).json() + "\n" + step(2).json() + "\n");
}

TEST_F(Metrics, AFileThatIsRemovedUnderTheRunIsBegunAgain) {
  MetricsFile metrics(file);
  metrics.append(step(1));
  std::filesystem::remove(file);
  metrics.append(step(2));
  metrics.append(step(3));
  EXPECT_EQ(content(), step(2).json() + "\n" + step(3).json() + "\n");
}

TEST_F(Metrics, FolderInTheWayIsNamedWithTheWayOut) {
  std::filesystem::create_directory(file);
  try {
    MetricsFile metrics(file);
    FAIL() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), file + " is a folder: move it away.");
  }
}

TEST_F(Metrics, TornLastLineIsCutOff) {
  MetricsFile(file).append(step(1));
  std::string whole = content();
  for (std::size_t length = 1; length < step(2).json().size(); length += 3) {
    write_raw(step(2).json().substr(0, length));
    MetricsFile opened(file);
    ASSERT_EQ(content(), whole);
    ASSERT_EQ(opened.last_step(), 1);
  }
  os::write_file_atomically(file, "{\"st");
  EXPECT_EQ(MetricsFile(file).last_step(), -1);
  EXPECT_EQ(content(), "");
}

TEST_F(Metrics, LaterStepsAreDroppedAndWritingGoesOn) {
  MetricsFile metrics(file);
  for (int i = 1; i <= 5; ++i) metrics.append(step(i));
  metrics.drop_after(3);
  EXPECT_EQ(metrics.last_step(), 3);
  metrics.append(step(4));
  EXPECT_EQ(content(), step(1).json() + "\n" + step(2).json() + "\n" + step(3).json() + "\n" + step(4).json() + "\n");
  metrics.drop_after(0);
  EXPECT_EQ(content(), "");
  EXPECT_EQ(metrics.last_step(), -1);
}

TEST_F(Metrics, NothingToDropLeavesTheFileAlone) {
  MetricsFile metrics(file);
  metrics.append(step(1));
  auto before = std::filesystem::last_write_time(file);
  metrics.drop_after(1);
  EXPECT_EQ(std::filesystem::last_write_time(file), before);
}

TEST_F(Metrics, DamagedLinesAreLeftOutAndNeverTaken) {
  write_raw(step(1).json() + "\nnot json\n[1]\n{\"step\": \"2\"}\n\n" + std::string("\0\0\n", 3));
  MetricsFile metrics(file);
  EXPECT_EQ(metrics.last_step(), 1);
  metrics.drop_after(100);
  EXPECT_EQ(content(), step(1).json() + "\n");
}

TEST_F(Metrics, AStepThatCannotBeCostsItsLineAlone) {
  std::string good[9];
  for (int i = 1; i <= 8; ++i) good[i] = step(i).json() + "\n";
  auto after = [&](const std::string& text) {
    os::write_file_atomically(file, text);
    MetricsFile metrics(file);
    std::string said = metrics.drop_after(8);
    return said.empty() ? said : said.substr(said.find(": ") + 2);
  };
  EXPECT_EQ(after(good[1] + good[2] + good[3]), "");
  for (const char* wrong : {"-3", "7", "1", "1000000000001", "18446744073709551616", "3.5", "null"}) {
    std::string line = std::string("{\"step\": ") + wrong + "}\n";
    EXPECT_EQ(after(good[1] + good[2] + line + good[4] + good[5]), "line 3 is damaged and left out.") << wrong;
    EXPECT_EQ(content(), good[1] + good[2] + good[4] + good[5]) << wrong;
  }
  EXPECT_EQ(after(good[1] + good[2] + good[2] + good[3]), "line 3 is damaged and left out.") << "a doubled line";
  EXPECT_EQ(content(), good[1] + good[2] + good[3]);
  EXPECT_EQ(after("x\n" + good[1] + "{\"step\": 2, \"lo"), "lines 1, 3 are damaged and left out.");
  EXPECT_EQ(content(), good[1]);
  EXPECT_EQ(after("x\nx\nx\nx\nx\nx\nx\n" + good[4]), "lines 1, 2, 3, 4, 5 and 2 more are damaged and left out.");
}

TEST_F(Metrics, AGoodLastLineWithoutItsEndIsKept) {
  write_raw(step(1).json() + "\n" + step(2).json());
  MetricsFile metrics(file);
  metrics.append(step(3));
  EXPECT_EQ(metrics.drop_after(9), "");
  EXPECT_EQ(content(), step(1).json() + "\n" + step(2).json() + "\n" + step(3).json() + "\n");
}

TEST_F(Metrics, NulBytesOfALostBlockDoNotTakeTheNextLineWithThem) {
  write_raw(step(1).json() + "\n" + std::string(100, '\0') + step(3).json() + "\n" + std::string(50, '\0'));
  MetricsFile metrics(file);
  EXPECT_EQ(metrics.drop_after(9), "Metrics file " + file + ": line 3 is damaged and left out.");
  EXPECT_EQ(content(), step(1).json() + "\n" + step(3).json() + "\n");
}

TEST_F(Metrics, FullDiskLeavesWholeLines) {
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A limit on the size of files stands in for a full disk.
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    MetricsFile metrics(file);
    for (int i = 1; i < 100; ++i) {
      try {
        metrics.append(step(i));
      } catch (const Error& e) {
        std::string text = e.what();
        bool told = text.find(file) != std::string::npos && text.find("Make room") != std::string::npos;
        ::_exit(told ? 0 : 1);
      }
    }
    ::_exit(2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::string text = content();
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(text.back(), '\n');
  EXPECT_GE(MetricsFile(file).last_step(), 1);
}

}  // namespace
}  // namespace ganymede::metrics
