#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process_wait.h"
#include "tests/support/tiny_dataset.h"
#include "tests/support/training_run.h"

/// Bad input of every kind: one clear error, the right exit code, nothing lost, no process left.
namespace ganymede::test {

namespace fs = std::filesystem;

class BadInput : public ::testing::Test {
 protected:
  /// The run ends with `code` and says all of `parts` on one line; nothing is left.
  void expect_refused(TrainingRun& run, int code, const std::vector<std::string>& parts,
                      const std::vector<std::string>& arguments = {}) {
    EXPECT_EQ(run.train(arguments), code) << run.output();
    std::istringstream lines(run.output());
    bool found = false;
    for (std::string line; std::getline(lines, line);)
      found = found || std::all_of(parts.begin(), parts.end(),
                                   [&](const auto& part) { return line.find(part) != std::string::npos; });
    EXPECT_TRUE(found) << "not on one line of:\n" << run.output();
    wait_until([&] { return run.leftovers().empty(); }, 5, "no process is left");
  }

  std::string write(const std::string& name, const std::string& text) {
    std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  /// A copy of the tiny dataset that a test may break.
  std::string dataset_copy() {
    std::string copy = folder_.path() + "/dataset";
    fs::copy(tiny_dataset(), copy, fs::copy_options::recursive);
    return copy;
  }

  TemporaryFolder folder_;
};

}  // namespace ganymede::test
