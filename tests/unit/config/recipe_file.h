#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/config/config.h"

namespace ganymede::config {

/// A test that writes recipes to a folder of its own.
class RecipeFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ganymede_config_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    file = folder + "/recipe.toml";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  Config load_text(const std::string& text, const std::vector<std::string>& settings = {}) {
    std::ofstream(file, std::ios::binary) << text;
    return load(file, settings);
  }

  /// The error of `load` with the folder's path left out of its text; fails the test when its code is not `usage`.
  std::string error_of(const std::string& text, const std::vector<std::string>& settings = {}) {
    try {
      load_text(text, settings);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::usage) << e.what();
      return without_folder(e.what());
    }
    return "no error";
  }

  std::string without_folder(std::string text) const {
    for (auto at = text.find(folder + "/"); at != std::string::npos; at = text.find(folder + "/")) {
      text.erase(at, folder.size() + 1);
    }
    return text;
  }

  std::string folder, file;
};

}  // namespace ganymede::config
