#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "common/plan/plan.h"

namespace ganymede::plan {
namespace {

TEST(StepPlan, ComputeAndWireOfDifferentTypesAreRefused) {
  config::Config config;
  config.compute.dtype = config::Dtype::bf16;
  try {
    build(config, placement::build(config, 0), PlanKind::train);
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    EXPECT_NE(std::string(e.what()).find("wire.dense_gather"), std::string::npos);
  }
}

}  // namespace
}  // namespace ganymede::plan
