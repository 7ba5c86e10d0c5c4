#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "launcher/cli/ctl.h"
#include "tests/support/served_segments.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::cli {

/// A run directory with a keeper, but without a launcher.
class Ctl : public testing::Test {
 protected:
  Ctl() {
    std::filesystem::create_directory(folder_.path() + "/ipc");
    std::filesystem::create_symlink(keeper_->path(), folder_.path() + "/ipc/keeper.sock");
  }
  ~Ctl() override { std::filesystem::current_path(before_); }

  std::string error_of(const std::string& command) {
    CLI::App app;
    add_ctl(app);
    try {
      app.parse("ctl " + folder_.path() + " " + command);
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
    return "no error";
  }

  ExitCode code_ = ExitCode::done;  // of the last error
  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
  std::unique_ptr<test::ServedSegments> keeper_ = std::make_unique<test::ServedSegments>(1 << 20);
};

}  // namespace ganymede::cli
