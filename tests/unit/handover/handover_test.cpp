#include "services/optimizer/handover/handover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <optional>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/cell/handover.h"
#include "common/cell/layouts.h"
#include "common/newton_schulz/cblas/cblas_products.h"
#include "common/os/fd.h"
#include "tests/support/builtin_facts.h"

namespace ganymede::optimizer {
namespace {

config::Config handing_over() {
  config::Config config;
  config.model.hidden = 48;
  config.model.layers = 2;
  config.model.experts = 4;
  config.optimizer.name = "muon";
  config.optimizer.groups[config::rest_group].optimizer = "adamw";
  config.newton_schulz.where = config::OrthogonaliseWhere::optimizer;
  return config;
}

class HandoverTest : public testing::Test {
 protected:
  HandoverTest() {
    config::Config config = handing_over();
    shm::Layout layout = shm::matrices_layout(config, placement::build(config, 0, builtin_facts()), 0);
    os::Fd fd(memfd_create("matrices", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(layout.size)), 0);
    segment_.emplace(shm::Segment::create(fd.get(), layout, 1));
    handover_ = shm::handover_of(*segment_);
    settings_.schedule = newton_schulz::parse_schedule("coefficients", "quintic5");
  }

  /// As the worker asks.
  void ask(std::uint64_t rows, std::uint64_t columns, std::uint64_t count) {
    std::uint64_t number = handover_.words->request + 1;
    for (std::uint64_t i = 0; i < rows * columns * count && i < handover_.in.size(); ++i)
      handover_.in[i] = static_cast<float>(normal(3, number, i, 4));
    handover_.words->rows = rows;
    handover_.words->columns = columns;
    handover_.words->count = count;
    handover_.words->work = shm::handover_orthogonalise;
    handover_.words->request = number;
  }
  bool answer() {
    auto orthogonalise = [this](const newton_schulz::Batch& batch) {
      return newton_schulz::orthogonalise(products_, batch, settings_, workspace_);
    };
    return answer_handover(handover_, orthogonalise, nullptr, {});
  }

  std::optional<shm::Segment> segment_;
  shm::Handover handover_;
  newton_schulz::CblasProducts products_;
  newton_schulz::Settings settings_;
  newton_schulz::Workspace workspace_;
};

TEST_F(HandoverTest, ARequestIsAnsweredOnce) {
  EXPECT_FALSE(answer()) << "nobody has asked";
  ask(8, 24, 3);
  EXPECT_TRUE(answer());
  EXPECT_EQ(handover_.words->answer, 1u);
  EXPECT_EQ(handover_.words->overflowed, 0u);
  EXPECT_FALSE(answer());
  for (int matrix = 0; matrix < 3; ++matrix) {  // rows that are nearly orthonormal
    const float* x = handover_.out.data() + matrix * 8 * 24;
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) {
        double product = 0;
        for (int k = 0; k < 24; ++k) product += static_cast<double>(x[i * 24 + k]) * x[j * 24 + k];
        EXPECT_NEAR(product, i == j ? 1 : 0, 0.1);
      }
    }
  }
}

TEST_F(HandoverTest, AServerThatComesBackAnswersAgainWithTheSameBits) {
  ask(24, 16, 2);
  EXPECT_TRUE(answer());
  std::vector<float> first(handover_.out.begin(), handover_.out.end());
  std::fill(handover_.out.begin(), handover_.out.end(), 0.0f);
  handover_.words->answer = 0;  // its predecessor died before it had answered
  EXPECT_TRUE(answer());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), handover_.out.begin()));
}

TEST_F(HandoverTest, WhatDoesNotStayFiniteIsNamed) {
  ask(4, 4, 3);
  handover_.in[17] = INFINITY;
  EXPECT_TRUE(answer());
  EXPECT_EQ(handover_.words->overflowed, 2u) << "the second matrix";
}

TEST_F(HandoverTest, AShapeThatTheSegmentCannotHoldIsRefused) {
  auto refused = [&](std::uint64_t rows, std::uint64_t columns, std::uint64_t count) {
    ask(rows, columns, count);
    try {
      answer();
    } catch (const Error& error) {
      return testing::Value(std::string(error.what()), testing::HasSubstr("has room for"));
    }
    return false;
  };
  EXPECT_TRUE(refused(handover_.in.size() + 1, 1, 1));
  EXPECT_TRUE(refused(1u << 31, 1u << 31, 4));
  EXPECT_TRUE(refused(0, 4, 4));
  EXPECT_TRUE(refused(4, 4, ~0ull));
}

TEST_F(HandoverTest, WhatNobodyDoesHereIsRefused) {
  ask(4, 4, 1);
  handover_.words->work = shm::handover_update;
  EXPECT_THROW(answer(), Error) << "no plugin is loaded";
  handover_.words->work = 0;
  EXPECT_THROW(answer(), Error);
}

TEST(HandoverSegment, IsThereForAnOptimizerThatUpdatesMatrices) {
  config::Config config = handing_over();
  config.newton_schulz.where = config::OrthogonaliseWhere::worker;
  config.optimizer.name = "normuon";
  shm::HandoverRoom room = shm::handover_room(config, placement::build(config, 0, builtin_facts()));
  EXPECT_GT(room.elements, 0);
  EXPECT_GT(room.matrices, 0);
  EXPECT_GE(room.row_values, room.matrices);
}

TEST(HandoverSegment, IsThereOnlyWhereTheOptimizerServerOrthogonalises) {
  config::Config config = handing_over();
  placement::Placement placement = placement::build(config, 0, builtin_facts());
  EXPECT_GE(shm::handover_room(config, placement).elements, 48 * 32);
  config.newton_schulz.where = config::OrthogonaliseWhere::worker;
  EXPECT_EQ(shm::handover_room(config, placement).elements, 0);
  config.optimizer.name = "adamw";
  config.optimizer.groups.clear();
  config.newton_schulz.where = config::OrthogonaliseWhere::optimizer;
  EXPECT_EQ(shm::handover_room(config, placement::build(config, 0, builtin_facts())).elements, 0);
}

}  // namespace
}  // namespace ganymede::optimizer
