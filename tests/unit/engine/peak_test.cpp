#include "services/worker/engine/job/peak.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/os/files.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::worker {
namespace {

TEST(Peak, IsTheMostThatWasMeasuredOnTheSameMachine) {
  test::TemporaryFolder folder;
  std::string file = folder.path() + "/peak.json";
  config::Config config;
  config.compute.threads = 2;
  EXPECT_EQ(peak_flops(config, file, "cpu", 5e9), 5e9);
  EXPECT_EQ(peak_flops(config, file, "cpu", 3e9), 5e9);  // the machine was busy
  EXPECT_EQ(peak_flops(config, file, "cpu", 7e9), 7e9);
  EXPECT_EQ(peak_flops(config, file, "cpu", 1e9), 7e9);
  EXPECT_EQ(peak_flops(config, file, "other cpu", 1e9), 1e9);
  config.compute.threads = 1;
  EXPECT_EQ(peak_flops(config, file, "other cpu", 5e8), 5e8);
  config.compute.dtype = config::Dtype::bf16;
  EXPECT_EQ(peak_flops(config, file, "other cpu", 2e8), 2e8);
}

TEST(Peak, ADamagedFileIsReplaced) {
  test::TemporaryFolder folder;
  std::string file = folder.path() + "/peak.json";
  for (const char* text : {"", "{", "[]", "{\"place\": 1}", "{\"flops_per_second\": \"many\"}"}) {
    os::write_file_atomically(file, text);
    EXPECT_EQ(peak_flops({}, file, "cpu", 5e9), 5e9) << text;
    EXPECT_EQ(peak_flops({}, file, "cpu", 4e9), 5e9) << text;
  }
}

}  // namespace
}  // namespace ganymede::worker
