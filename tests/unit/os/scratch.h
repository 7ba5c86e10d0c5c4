#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ganymede::os {

/// A test with a folder of its own that is gone afterwards.
class WithFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ganymede_os_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string in(const std::string& name) const { return folder + "/" + name; }
  std::string folder;
};

}  // namespace ganymede::os
