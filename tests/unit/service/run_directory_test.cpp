#include "common/service/run_directory.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/base/error.h"

namespace ganymede::service {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RunDirectory : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ganymede-run-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path("/");
    std::filesystem::remove_all(folder_);
  }

  static Manifest sample(std::uint64_t step) {
    Manifest manifest{step, 2, 1, 1.0 / 3, "adamw", "abc", "[run]\nseed = 1\n", "bytes", {}};
    manifest.parts = {{1, 20, "h1"}, {0, 10, "h0"}};
    manifest.dataset = "d0";
    return manifest;
  }

  template <class Call>
  static std::string error_of(Call call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  static std::string reason_of_damage() {
    auto damaged = find_manifests(".").damaged;
    return damaged.empty() ? "no damage" : damaged.back().reason;
  }

  std::string folder_;
};

TEST_F(RunDirectory, TheJobIsReadAsItWasWritten) {
  JobPlugin one{{"one", {"a", "b"}, true, {"b"}, true, {"gradient_square"}}, "plugins/x.so", ~std::uint64_t{0}},
      two{{"two", {}, false}, "y.so", 7};
  write_job({0xfedcba9876543210, {one, two}, "/data/old", "lo", "d0"});
  Job job = read_job();
  EXPECT_EQ(job.id, 0xfedcba9876543210);
  ASSERT_EQ(job.plugins.size(), 2u);
  EXPECT_EQ(job.optimizers(), (std::vector<placement::OptimizerFacts>{one.facts, two.facts}));
  EXPECT_EQ(job.plugins[0].file, "plugins/x.so");
  EXPECT_EQ(job.plugins[0].hash, ~std::uint64_t{0});
  Job other = job;
  std::swap(other.plugins[0], other.plugins[1]);
  EXPECT_NE(job.plugin_hash(), other.plugin_hash());
  EXPECT_EQ(job.load_from, "/data/old");
  EXPECT_EQ(job.dataset, "d0");
}

TEST_F(RunDirectory, ADamagedJobIsOneErrorThatNamesFileAndField) {
  EXPECT_THAT(error_of(read_job), HasSubstr("job.json"));
  auto error = [](const std::string& text) {
    std::ofstream("job.json") << text;
    return error_of(read_job);
  };
  EXPECT_THAT(error(""), HasSubstr("job.json is damaged"));
  EXPECT_THAT(error("{\"job\": 1"), HasSubstr("job.json is damaged"));
  EXPECT_THAT(error("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr("\"job\" is missing"));
  EXPECT_THAT(error("{\"job\": -1}"), HasSubstr("\"job\" is not a whole number"));
  EXPECT_THAT(error("{\"job\": 1, \"plugins\": [1]}"), HasSubstr("\"plugins\""));
}

TEST_F(RunDirectory, StatisticsOfAManifestAreReadWithTheSameBits) {
  Manifest manifest = sample(7);
  write_manifest(".", manifest);
  EXPECT_FALSE(read_manifests(".").at(0).statistics);
  manifest.statistics = {.steps = 90,
                         .loss = {.mean = 1.0 / 3, .variance = 5e-324},
                         .grad_norm = {.mean = std::nextafter(1.0, 2.0), .variance = 1e300 / 7}};
  write_manifest(".", manifest);
  auto read = read_manifests(".").at(0).statistics;
  ASSERT_TRUE(read);
  EXPECT_EQ(read->steps, 90u);
  EXPECT_EQ(read->loss.mean, 1.0 / 3);
  EXPECT_EQ(read->loss.variance, 5e-324);
  EXPECT_EQ(read->grad_norm.mean, std::nextafter(1.0, 2.0));
  EXPECT_EQ(read->grad_norm.variance, 1e300 / 7);
}

TEST_F(RunDirectory, StatisticsThatCannotBeAreDamage) {
  Manifest manifest = sample(7);
  manifest.statistics = {.steps = 90, .loss = {.mean = 1, .variance = -1}, .grad_norm = {}};
  write_manifest(".", manifest);
  EXPECT_THAT(reason_of_damage(), HasSubstr("\"statistics\" has values that cannot be"));
}

TEST_F(RunDirectory, ManifestsAreReadOldestFirstWithPartsByRank) {
  write_manifest(".", sample(200));
  write_manifest(".", sample(1000));
  write_manifest(".", sample(30));
  auto manifests = read_manifests(".");
  ASSERT_EQ(manifests.size(), 3u);
  EXPECT_EQ(manifests[0].step, 30u);
  EXPECT_EQ(manifests[2].step, 1000u);
  const Manifest& first = manifests[0];
  EXPECT_EQ(first.loss, 1.0 / 3);
  EXPECT_EQ(first.config, "[run]\nseed = 1\n");
  EXPECT_EQ(first.parts[0].hash, "h0");
  EXPECT_EQ(first.dataset, "d0");
  EXPECT_EQ(first.parts[1].rank, 1);
  EXPECT_EQ(first.bytes(), 30u);
}

TEST_F(RunDirectory, ALossThatIsNoNumberIsKept) {
  Manifest manifest = sample(1);
  manifest.loss = std::numeric_limits<double>::quiet_NaN();
  write_manifest(".", manifest);
  EXPECT_TRUE(std::isnan(read_manifests(".")[0].loss));
}

TEST_F(RunDirectory, DraftsAndOtherFilesAreNoManifests) {
  write_manifest(".", sample(1));
  std::ofstream("manifest.000000000002.json.123.draft") << "{";
  for (const char* other : {"notes.txt", "manifest..json", "manifest.2.json", "manifest.00000000000x.json"})
    std::ofstream(other) << "x";
  EXPECT_EQ(read_manifests(".").size(), 1u);
  EXPECT_EQ(reason_of_damage(), "no damage");
  EXPECT_TRUE(read_manifests("missing").empty());
}

TEST_F(RunDirectory, AHalfWrittenManifestIsDamagedAtEveryLength) {
  write_manifest(".", sample(7));
  std::string name = manifest_name(7);
  std::string text;
  std::getline(std::ifstream(name), text, '\0');
  for (std::size_t size = 0; size + 2 < text.size(); size += 5) {
    std::ofstream(name) << text.substr(0, size);
    auto found = find_manifests(".");
    ASSERT_EQ(found.damaged.size(), 1u) << size;
    EXPECT_EQ(found.damaged[0].step, 7u);
    EXPECT_THAT(found.damaged[0].reason, HasSubstr(name)) << size;
  }
}

TEST_F(RunDirectory, ADamagedManifestLeavesTheOthersUsable) {
  for (std::uint64_t step : {7, 8, 9}) write_manifest(".", sample(step));
  for (std::uint64_t step : {7, 9}) std::ofstream(manifest_name(step)) << "{";
  auto found = find_manifests(".");
  ASSERT_EQ(found.intact.size(), 1u);
  EXPECT_EQ(found.damaged.size(), 2u);
  ASSERT_EQ(found.passed_over().size(), 1u);
  EXPECT_EQ(found.passed_over()[0].step, 9u);
  EXPECT_EQ(choose_manifest(found, ".", 0).step, 8u);
  EXPECT_EQ(choose_manifest(found, ".", 8).step, 8u);
  EXPECT_THAT(error_of([&] { choose_manifest(found, ".", 9); }), HasSubstr(manifest_name(9)));
  EXPECT_THAT(error_of([&] { choose_manifest(found, ".", 6); }), HasSubstr("those that are complete: 8"));
  std::filesystem::remove(manifest_name(8));
  EXPECT_THAT(error_of([] { choose_manifest(find_manifests("."), ".", 0); }), HasSubstr(manifest_name(9)));
}

TEST_F(RunDirectory, AManifestThatContradictsItselfIsDamaged) {
  write_manifest(".", sample(7));
  std::filesystem::rename(manifest_name(7), manifest_name(8));
  EXPECT_THAT(reason_of_damage(), AllOf(HasSubstr(manifest_name(8)), HasSubstr("of step 7")));
  std::filesystem::remove(manifest_name(8));
  Manifest manifest = sample(9);
  manifest.parts.pop_back();
  write_manifest(".", manifest);
  EXPECT_THAT(reason_of_damage(), HasSubstr("not those of 2 ranks"));
  manifest.parts = {{1, 1, "h"}, {1, 1, "h"}};
  write_manifest(".", manifest);
  EXPECT_THAT(reason_of_damage(), HasSubstr("not those of 2 ranks"));
}

TEST_F(RunDirectory, AManifestBeyondItsBoundsIsDamaged) {
  auto reason = [](auto change) {
    Manifest manifest = sample(7);
    change(manifest);
    write_manifest(".", manifest);
    std::string said = reason_of_damage();
    std::filesystem::remove(manifest_name(manifest.step));
    return said;
  };
  EXPECT_EQ(reason([](Manifest&) {}), "no damage");
  EXPECT_THAT(reason([](Manifest& m) { m.step = 1'000'000'000'001; }), HasSubstr("its step is 1000000000001"));
  EXPECT_THAT(reason([](Manifest& m) { m.step = 0; }), HasSubstr("its step is 0"));
  EXPECT_THAT(reason([](Manifest& m) { m.world = 65537; }), HasSubstr("65537 ranks"));
  EXPECT_THAT(reason([](Manifest& m) { m.written = ~std::uint64_t{0}; }),
              HasSubstr("\"written\" is 18446744073709551615"));
  EXPECT_THAT(reason([](Manifest& m) { m.optimizer = ""; }), HasSubstr("\"optimizer\" is no name"));
  EXPECT_THAT(reason([](Manifest& m) { m.optimizer = "ad\nam"; }), HasSubstr("\"optimizer\" is no name"));
  EXPECT_THAT(reason([](Manifest& m) { m.optimizer = std::string(257, 'a'); }), HasSubstr("is no name"));
}

TEST_F(RunDirectory, CheckpointsAreFoundFromTheRunOrFromTheirOwnFolder) {
  std::filesystem::create_directories("run/checkpoint");
  EXPECT_EQ(find_checkpoints("run"), "run/checkpoint");
  write_manifest("run/checkpoint", sample(1));
  EXPECT_EQ(find_checkpoints("run/checkpoint"), "run/checkpoint");
  std::filesystem::create_directories("empty");
  for (const char* folder : {"empty", "missing"}) {
    EXPECT_THAT(error_of([&] { find_checkpoints(folder); }), HasSubstr(folder));
  }
}

}  // namespace
}  // namespace ganymede::service
