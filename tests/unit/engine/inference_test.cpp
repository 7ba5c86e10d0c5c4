#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "services/worker/engine/cell.h"
#include "services/worker/engine/inference/generate.h"
#include "services/worker/engine/inference/safetensors.h"
#include "tests/unit/engine/test_world.h"

namespace ganymede::worker {
namespace {

TEST(Sampling, TemperatureZeroTakesTheMostLikelyAndOfEqualsTheFirst) {
  std::vector<float> logits = {0, 3, 1, 3};
  EXPECT_EQ(sample(logits, {.temperature = 0}, 0), 1);
}

TEST(Sampling, IsAFunctionOfSeedAndPosition) {
  std::vector<float> logits(50, 0.0f);
  std::vector<std::int64_t> first, again, other;
  for (std::uint64_t i = 0; i < 40; ++i) {
    first.push_back(sample(logits, {.temperature = 1, .seed = 1}, i));
    again.push_back(sample(logits, {.temperature = 1, .seed = 1}, i));
    other.push_back(sample(logits, {.temperature = 1, .seed = 2}, i));
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(Sampling, DrawsInProportionToTheProbabilities) {
  std::vector<float> logits = {std::log(0.7f), std::log(0.2f), std::log(0.1f)};
  std::array<int, 3> drawn{};
  for (std::uint64_t i = 0; i < 20000; ++i) ++drawn[sample(logits, {.temperature = 1}, i)];
  EXPECT_NEAR(drawn[0] / 20000.0, 0.7, 0.02);
  EXPECT_NEAR(drawn[1] / 20000.0, 0.2, 0.02);
}

TEST(Sampling, TopPLeavesOutTheUnlikely) {
  std::vector<float> logits = {std::log(0.1f), std::log(0.6f), std::log(0.3f)};
  for (std::uint64_t i = 0; i < 500; ++i) {
    EXPECT_NE(sample(logits, {.temperature = 1, .top_p = 0.85}, i), 0);
    EXPECT_EQ(sample(logits, {.temperature = 1, .top_p = 0.5}, i), 1);
    EXPECT_EQ(sample(logits, {.temperature = 1, .top_p = 0.0}, i), 1);
  }
}

class SafetensorsFile : public testing::Test {
 protected:
  void write(const std::string& header, std::size_t data_bytes, std::int64_t claimed = -1) {
    std::uint64_t length = claimed >= 0 ? static_cast<std::uint64_t>(claimed) : header.size();
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), 8);
    out << header;
    for (std::size_t i = 0; i < data_bytes / 4; ++i) {
      auto value = static_cast<float>(i);
      out.write(reinterpret_cast<const char*>(&value), 4);
    }
    out << std::string(data_bytes % 4, 'x');
  }
  ~SafetensorsFile() override { std::filesystem::remove(path_); }
  std::string path_ = testing::TempDir() + "/ganymede_unit.safetensors";
};

TEST_F(SafetensorsFile, GivesValuesByName) {
  write(R"({"__metadata__":{"step":"3"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
        R"("b":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}})",
        32);
  Safetensors file(path_);
  EXPECT_EQ(file.tensors().size(), 2u);
  std::vector<std::int64_t> shape = {2};
  std::array<float, 2> values{};
  file.copy("b", shape, values.data());
  EXPECT_EQ(values, (std::array<float, 2>{6, 7}));
  EXPECT_THROW(file.copy("c", shape, values.data()), Error);
  EXPECT_THROW(file.copy("a", shape, values.data()), Error);
}

TEST_F(SafetensorsFile, DamagedHeadersAreRefused) {
  const char* headers[] = {
      "",
      "[]",
      "{",
      R"({"a":1})",
      R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
      R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
      R"({"a":{"dtype":"F32","shape":"2","data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[18446744073709551612,4]}})",
  };
  for (const char* header : headers) {
    write(header, 8);
    EXPECT_THROW(Safetensors{path_}, Error) << header;
  }
}

TEST_F(SafetensorsFile, ALengthBeyondTheFileIsRefused) {
  write("{}", 0, 3);
  EXPECT_THROW(Safetensors{path_}, Error);
  write("{}", 0, std::int64_t{1} << 62);
  EXPECT_THROW(Safetensors{path_}, Error);
  std::ofstream(path_, std::ios::trunc) << "abc";
  EXPECT_THROW(Safetensors{path_}, Error);
}

CheckpointModel model_of(TestWorld& world) {
  auto values = world.parameters();
  return CheckpointModel(world.cell(0).config(), [&](const model_spec::ParameterSpec& parameter, float* to) {
    std::copy(values.at(parameter.name).begin(), values.at(parameter.name).end(), to);
  });
}

TEST(CheckpointModel, HasTheLossOfTheWorldItCameFrom) {
  config::Config config = tiny_config();
  config.parallel.ranks = 2;
  config.parallel.expert_group = 2;
  TestWorld world(config);
  world.losses(3);
  CheckpointModel model = model_of(world);
  double sum = 0;
  std::int64_t tokens = 0;
  for (int rank = 0; rank < 2; ++rank) {
    Batches rows = map_cell(world.cell(rank), 0).validation;
    for (int r = 0; r < rows.rows; ++r) {
      model::Row row = rows.row(0, r);
      sum += model.loss(row);
      tokens += row.targets.ge(0).sum().item<std::int64_t>();
    }
  }
  EXPECT_NEAR(sum / static_cast<double>(tokens), world.validate(3), 1e-6);
}

TEST(Generate, ContinuesCountingAndSeesNoMoreThanARow) {
  config::Config config = tiny_config();
  TestWorld world(config);
  world.losses(120);
  CheckpointModel model = model_of(world);
  std::vector<std::int64_t> start, drawn;
  for (std::int64_t i = 0; i < 8; ++i) start.push_back(3 + i);
  continue_tokens(model, start, 30, {.temperature = 0}, [&](std::int64_t token) { drawn.push_back(token); });
  ASSERT_EQ(drawn.size(), 30u);
  EXPECT_EQ(std::vector<std::int64_t>(drawn.begin(), drawn.begin() + 3), (std::vector<std::int64_t>{11, 12, 13}));
}

}  // namespace
}  // namespace ganymede::worker
