#include "common/service/checkpoint_name.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace ganymede::service {
namespace {

void expect(const std::string& text, const std::string& folder, std::uint64_t step) {
  CheckpointName name = read_checkpoint_name(text);
  EXPECT_EQ(name.folder, folder) << text;
  EXPECT_EQ(name.step, step) << text;
  EXPECT_EQ(text_of(name), text);
}

TEST(CheckpointName, IsAFolderAFolderWithAStepOrAStep) {
  expect("", "", 0);
  expect("runs/a", "runs/a", 0);
  expect("runs/a@120", "runs/a", 120);
  expect("120", "", 120);
  expect("./120", "./120", 0);
  for (const char* text : {"0", "@5", "runs/a@", "runs/a@x", "runs/a@0", "12x", "-3"}) expect(text, text, 0);
  EXPECT_TRUE(read_checkpoint_name("120").own());
  for (const char* text : {"", "runs/a", "runs/a@120"}) EXPECT_FALSE(read_checkpoint_name(text).own()) << text;
}

TEST(CheckpointName, FolderThatIsThereKeepsItsName) {
  test::TemporaryFolder folder;
  std::string path = folder.path() + "/a@5";
  std::filesystem::create_directory(path);
  expect(path, path, 0);
  expect(path + "@7", path, 7);
}

}  // namespace
}  // namespace ganymede::service
