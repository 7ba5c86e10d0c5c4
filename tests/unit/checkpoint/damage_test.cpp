#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "services/checkpoint/checkpoint_view.h"
#include "services/checkpoint/list.h"
#include "services/checkpoint/restore.h"
#include "services/checkpoint/verify.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/checkpoint/test_cell.h"

namespace ganymede::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<fs::path> tables(const std::string& checkpoints, int rank) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(part_folder(checkpoints, rank))) {
    if (entry.path().extension() == ".sst") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return fs::file_size(a) > fs::file_size(b); });
  return found;
}

std::vector<Damage> damage_of(const std::string& folder) {
  CheckpointView view = open_checkpoint(folder, 0);
  return verify(view, [](std::uint64_t, std::uint64_t) {}).damage;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class DamagedCheckpoint : public testing::Test {
 protected:
  DamagedCheckpoint() { TestWorld(test_config(2, 1), folder.path()).checkpoint(7); }
  test::TemporaryFolder folder;
};

TEST_F(DamagedCheckpoint, FlippedByteIsFoundAndNamed) {
  fs::path table = tables(folder.path(), 1).front();
  std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(5000);
  char byte = static_cast<char>(file.get());
  file.seekp(5000);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  std::vector<Damage> damage = damage_of(folder.path());
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_THAT(damage[0].where, testing::StartsWith("rank.1/"));

  TestWorld world(test_config(1, 1), folder.path());
  std::string text = error_of([&] { world.load(7); });
  EXPECT_THAT(text, HasSubstr("step 7"));
  EXPECT_THAT(text, HasSubstr(damage[0].where));
  EXPECT_THAT(text, HasSubstr("ganymede checkpoint verify"));
  EXPECT_EQ(world.cells[0]->control().block->restored, 0u);
}

TEST_F(DamagedCheckpoint, TruncatedFileIsFound) {
  fs::path table = tables(folder.path(), 1).front();
  fs::resize_file(table, fs::file_size(table) - 1);
  EXPECT_THAT(damage_of(folder.path()), testing::Not(testing::IsEmpty()));
}

TEST_F(DamagedCheckpoint, MissingFilesAndPartsAreFound) {
  fs::remove(tables(folder.path(), 0).front());
  EXPECT_THAT(damage_of(folder.path()), testing::Not(testing::IsEmpty()));
  fs::remove_all(part_folder(folder.path(), 1));
  std::vector<Damage> damage = damage_of(folder.path());
  ASSERT_THAT(damage, testing::Not(testing::IsEmpty()));
  EXPECT_EQ(damage.back().where, "rank.1");
  EXPECT_FALSE(list_checkpoints(folder.path())[0].complete);
}

TEST_F(DamagedCheckpoint, PipeInThePlaceOfAFileHoldsUpNobody) {
  fs::path current = fs::path(part_folder(folder.path(), 1)) / "CURRENT";
  for (const fs::path& file : {current, tables(folder.path(), 1).front()}) {
    fs::rename(file, folder.path() + "/kept");
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    std::string said = file.string() + " is not a file";
    std::vector<Damage> damage = damage_of(folder.path());
    ASSERT_EQ(damage.size(), 1u);
    EXPECT_THAT(damage[0].reason, HasSubstr(said));
    ListedCheckpoint listed = list_checkpoints(folder.path()).at(0);
    EXPECT_FALSE(listed.complete);
    EXPECT_THAT(listed.damaged, HasSubstr(said));
    EXPECT_THAT(error_of([&] { PartStore(part_folder(folder.path(), 1), [](std::string_view) {}); }), HasSubstr(said));
    fs::rename(folder.path() + "/kept", file);
  }
  EXPECT_THAT(damage_of(folder.path()), testing::IsEmpty());
}

TEST(DamagedStore, FileOfAnOlderCheckpointIsMissedByNameAndTheNewestOneCanStillBeRead) {
  test::TemporaryFolder folder;
  std::string checkpoints = folder.path() + "/checkpoint", store = part_folder(checkpoints, 0);
  fs::path missing;
  {
    TestWorld world(test_config(1, 1), checkpoints);
    world.checkpoint(10);
    missing = tables(checkpoints, 0).front();
    world.checkpoint(20);
  }
  fs::remove(missing);
  EXPECT_EQ(error_of([&] { PartStore(store, [](std::string_view) {}); }),
            fmt::format("The checkpoint database {} lacks its file {}: put it back from a copy, or start a new run in "
                        "another folder with --from {}.",
                        store, missing.filename().string(), checkpoints));
  EXPECT_EQ(open_checkpoint(checkpoints, 0).manifest().step, 20u);
  EXPECT_THAT(damage_of(checkpoints), testing::IsEmpty()) << "what --from reads";
}

TEST_F(DamagedCheckpoint, PartOfAnotherCheckpointIsNotBelieved) {
  test::TemporaryFolder other;
  {
    TestWorld world(test_config(2, 1), other.path());
    world.cells[1]->fill(8);
    world.cells[1]->order_snapshot(7, false);
    world.services[1]->serve();
  }
  fs::remove_all(part_folder(folder.path(), 1));
  fs::copy(part_folder(other.path(), 1), part_folder(folder.path(), 1), fs::copy_options::recursive);
  std::vector<Damage> damage = damage_of(folder.path());
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_EQ(damage[0].where, "rank.1");
}

TEST_F(DamagedCheckpoint, BrokenManifestIsListedAndTheIntactOneIsUsed) {
  std::ofstream(fs::path(folder.path()) / service::manifest_name(9)) << "{\"step\": 9";
  std::vector<ListedCheckpoint> listed = list_checkpoints(folder.path());
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_TRUE(listed[0].complete);
  EXPECT_EQ(listed[0].damaged, "");
  EXPECT_EQ(listed[1].step, 9u);
  EXPECT_FALSE(listed[1].complete);
  EXPECT_THAT(listed[1].damaged, HasSubstr(service::manifest_name(9)));
  EXPECT_EQ(open_checkpoint(folder.path(), 0).manifest().step, 7u);
  EXPECT_THAT(damage_of(folder.path()), testing::IsEmpty());
  EXPECT_THAT(error_of([&] { open_checkpoint(folder.path(), 9); }), HasSubstr(service::manifest_name(9)));
}

void break_manifest(const std::string& folder, std::uint64_t step) {
  std::ofstream(fs::path(folder) / service::manifest_name(step)) << "{";
}

TEST(DamagedManifest, KeepsItsPartsAndGoesWithThoseOfItsTime) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(1, 1), folder.path());  // keeps 2
  for (std::uint64_t step : {10, 20}) world.checkpoint(step);
  std::string copy = folder.path() + "/copy";
  fs::copy(fs::path(folder.path()) / service::manifest_name(20), copy);
  break_manifest(folder.path(), 20);
  world.checkpoint(30);
  fs::copy(copy, fs::path(folder.path()) / service::manifest_name(20), fs::copy_options::overwrite_existing);
  EXPECT_THAT(open_checkpoint(folder.path(), 20).damage(), testing::IsEmpty()) << "its part is still there";
  break_manifest(folder.path(), 20);
  for (std::uint64_t step : {40, 50}) world.checkpoint(step);
  std::vector<ListedCheckpoint> listed = list_checkpoints(folder.path());
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].step, 40u);
}

TEST(DamagedManifest, IsReplacedByTheRunThatReachesItsStepAgain) {
  test::TemporaryFolder folder;
  {
    TestWorld earlier(test_config(1, 1), folder.path());
    for (std::uint64_t step : {10, 20}) earlier.checkpoint(step);
  }
  break_manifest(folder.path(), 20);
  TestWorld world(test_config(1, 1), folder.path());
  world.cells[0]->job_ = 2;
  world.load(10);
  EXPECT_EQ(world.cells[0]->wrong_elements(10), 0);
  world.cells[0]->fill(20);
  world.cells[0]->order_snapshot(20, true);
  world.recover();
  EXPECT_TRUE(world.launcher.parts.empty()) << "the part of the earlier launch is not taken for this one's";
  world.serve_all();
  EXPECT_EQ(world.launcher.committed_step, 20u);
  EXPECT_EQ(list_checkpoints(folder.path()).back().damaged, "");
  EXPECT_THAT(damage_of(folder.path()), testing::IsEmpty());
}

TEST(Restore, OptimizerWithOtherStateIsRefusedInOneSentence) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(1, 1), folder.path());
  world.checkpoint(7);
  CheckpointView view = open_checkpoint(folder.path(), 7);
  CellArrays arrays{world.cells[0]->array("master"), {world.cells[0]->array("first_moment")}};
  auto other = placement::build(test_config(1, 1), 0, {{"adamw", {"momentum"}, false}});
  std::string text = error_of([&] { restore(view, other, arrays, [](auto, auto) {}); });
  EXPECT_THAT(text, HasSubstr("first_moment, master, second_moment"));
  EXPECT_THAT(text, HasSubstr("not the momentum that optimizer adamw needs"));
}

TEST(Restore, OtherModelIsRefusedWithBothShapes) {
  test::TemporaryFolder folder;
  TestWorld(test_config(1, 1), folder.path()).checkpoint(7);
  config::Config config = test_config(1, 1);
  config.model.vocabulary = 1032;
  TestWorld other(config, folder.path());
  EXPECT_THAT(error_of([&] { other.load(7); }), HasSubstr("1031 x 48"));
}

TEST(Restore, StepThatIsNotThereIsRefusedNamingThoseThatAre) {
  test::TemporaryFolder folder;
  TestWorld(test_config(1, 1), folder.path()).checkpoint(7);
  EXPECT_THAT(error_of([&] { open_checkpoint(folder.path(), 8); }), HasSubstr("those that are complete: 7"));
}

/// No file of this process may grow beyond `bytes`: as a full disk does, writes fail in the middle.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(FullDisk, FailsOneCheckpointIsReportedAndTheNextOneIsWhole) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(1, 1), folder.path());
  world.checkpoint(7);
  {
    SmallFiles full(64 << 10);
    world.checkpoint(8);
  }
  EXPECT_THAT(world.launcher.failure, HasSubstr("step 8"));
  EXPECT_EQ(world.cells[0]->control().block->snapshot, step_protocol::ended_word(8));
  EXPECT_EQ(list_checkpoints(folder.path()).back().step, 7u);
  for (const auto& entry : fs::directory_iterator(part_folder(folder.path(), 0))) {
    EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::StartsWith("incoming")));
  }
  world.checkpoint(9);
  EXPECT_EQ(world.launcher.committed_step, 9u);
  EXPECT_THAT(damage_of(folder.path()), testing::IsEmpty());
}

}  // namespace
}  // namespace ganymede::checkpoint
