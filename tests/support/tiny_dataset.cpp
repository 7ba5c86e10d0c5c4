#include "tests/support/tiny_dataset.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/os/process.h"
#include "tests/support/process_wait.h"
#include "tests/support/tree.h"

namespace ganymede::test {
namespace {

namespace fs = std::filesystem;

constexpr int files = 160;
constexpr int functions_a_file = 12;

/// A word that is a pure function of its place.
std::string word(std::uint64_t file, std::uint64_t place) {
  constexpr const char* words[] = {"row",  "step",  "loss",  "rank", "bucket", "gather", "token", "expert",
                                   "norm", "write", "store", "cell", "worker", "shard",  "plan",  "lane"};
  return words[philox(17, file, place)[0] % std::size(words)];
}

std::string made_up_source(std::uint64_t file) {
  std::string text = fmt::format("\"\"\"Module {}: {} and {}.\"\"\"\n\n", file, word(file, 1), word(file, 2));
  for (std::uint64_t i = 0; i < functions_a_file; ++i) {
    std::string a = word(file, 10 * i + 3), b = word(file, 10 * i + 4), c = word(file, 10 * i + 5);
    text += fmt::format(
        "def {0}_{1}({1}, {2}):\n    \"\"\"Return the {0} of {1}.\"\"\"\n    if {2} is None:\n        return {1}\n"
        "    for {0} in range({3}):\n        {1} = {1} + {0} * {2}\n    return {1}\n\n\n",
        a, b, c, philox(18, file, i)[1] % 100);
  }
  return text;
}

bool readable(const fs::path& dataset, const fs::path& output) {
  os::Command command;
  command.arguments = {std::string(GANYMEDE_BINARY_DIR) + "/ganymede-data", "inspect", dataset.string()};
  command.output_file = output.string();
  return wait_for_end(os::spawn(command), 60).exit_code == 0;
}

}  // namespace

std::string tiny_dataset() {
  fs::path home = fs::path(GANYMEDE_BINARY_DIR) / "test-data";
  fs::path dataset = home / "tiny";
  fs::path draft = home / fmt::format("draft.{}", getpid());
  fs::create_directories(draft / "sources");
  if (fs::exists(dataset)) {
    if (readable(dataset, draft / "inspected")) {
      fs::remove_all(draft);
      return dataset.string();
    }
    std::error_code taken;  // of a format before this one
    fs::rename(dataset, draft / "old", taken);
  }
  for (int i = 0; i < files; ++i)
    std::ofstream(draft / "sources" / fmt::format("module_{:03}.py", i))
        << made_up_source(static_cast<std::uint64_t>(i));
  os::Command command;
  command.arguments = {std::string(GANYMEDE_BINARY_DIR) + "/ganymede-data",
                       "pack",
                       (draft / "sources").string(),
                       "--to",
                       (draft / "packed").string(),
                       "--seq-len",
                       "64",
                       "--validation-fraction",
                       "0.05"};
  command.output_file = (draft / "out").string();
  auto ending = wait_for_end(os::spawn(command), 60);
  if (ending.exit_code != 0)
    fail("The tiny dataset could not be packed ({}): see {}.", ending.describe(), command.output_file);
  std::error_code taken;  // another test was faster: its dataset has the same bytes
  fs::rename(draft / "packed", dataset, taken);
  fs::remove_all(draft);
  return dataset.string();
}

}  // namespace ganymede::test
