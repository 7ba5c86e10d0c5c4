#include <gtest/gtest.h>

#include <algorithm>

#include "common/plan/plan.h"
#include "common/wire/bucket_form.h"

namespace ganymede::plan {
namespace {

config::Config fp8_config(int ranks, int expert_group) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.parallel.expert_group = expert_group;
  config.model.layers = 3;
  config.data.rows_per_step = 12;
  config.data.seq_len = 32;
  config.validation.rows = 7;
  config.wire.expert_gather = config::ParameterWire::fp8;
  return config;
}

struct Shape {
  int ranks, expert_group;
};
class Fp8Plan : public testing::TestWithParam<Shape> {
 protected:
  config::Config config = fp8_config(GetParam().ranks, GetParam().expert_group);
  placement::Placement placement = placement::build(config, GetParam().ranks - 1);
};

TEST_P(Fp8Plan, KeepsTheInvariants) {
  for (PlanKind kind : {PlanKind::train, PlanKind::validate}) check(build(config, placement, kind));
}

TEST_P(Fp8Plan, ExpertsAreDecodedIntoABufferOfTheComputeType) {
  StepPlan plan = build(config, placement, PlanKind::train);
  std::vector<int> gathers(placement.buckets.size());
  for (const Operation& operation : plan.operations) {
    if (operation.kind != OperationKind::gather) continue;
    const placement::Bucket& bucket = placement.buckets[static_cast<std::size_t>(operation.bucket)];
    if (bucket.kind != model_spec::BucketKind::experts) continue;
    ++gathers[static_cast<std::size_t>(operation.bucket)];
    wire::BucketForm form(bucket, placement.parameters, config::ParameterWire::fp8);
    bool shared = bucket.group.size() > 1;
    ASSERT_EQ(operation.takes.size(), shared ? 2u : 1u);
    const Buffer& values = plan.buffers[static_cast<std::size_t>(operation.takes[0])];
    EXPECT_EQ(values.kind, BufferKind::parameters);
    EXPECT_GE(values.bytes, bucket.elements * 4);
    EXPECT_EQ(operation.wire, shared ? "fp8" : "");
    EXPECT_EQ(operation.bytes, form.shard_bytes() * static_cast<std::int64_t>(bucket.group.size() - 1));
    if (!shared) continue;
    const Buffer& encoded = plan.buffers[static_cast<std::size_t>(operation.takes[1])];
    EXPECT_EQ(encoded.kind, BufferKind::exchange);
    EXPECT_GE(encoded.bytes, form.bytes());
    EXPECT_LT(encoded.bytes, values.bytes / 3);
    auto gives_back = [&](const Operation& o) { return std::ranges::count(o.frees, operation.takes[1]) > 0; };
    auto later = std::ranges::find_if(plan.operations, gives_back);
    ASSERT_NE(later, plan.operations.end());
    EXPECT_EQ(later->kind, OperationKind::release) << "a free in the gather would hold up what stands behind it";
  }
  for (std::size_t b = 0; b < placement.buckets.size(); ++b) {
    const placement::Bucket& bucket = placement.buckets[b];
    bool last_layer = bucket.layer == 2;
    if (bucket.kind == model_spec::BucketKind::experts) {
      EXPECT_EQ(gathers[b], last_layer ? 1 : 2) << bucket.name;
    }
  }
}

TEST_P(Fp8Plan, DenseBucketsGoAsBefore) {
  StepPlan plan = build(config, placement, PlanKind::train);
  for (const Operation& operation : plan.operations) {
    if (operation.kind != OperationKind::gather) continue;
    const placement::Bucket& bucket = placement.buckets[static_cast<std::size_t>(operation.bucket)];
    if (bucket.kind == model_spec::BucketKind::experts) continue;
    EXPECT_EQ(operation.takes.size(), bucket.group.size() > 1 ? 1u : 0u);
    EXPECT_EQ(operation.bytes, bucket.shard_elements() * 4 * static_cast<std::int64_t>(bucket.group.size() - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Fp8Plan,
                         testing::Values(Shape{1, 1}, Shape{2, 1}, Shape{2, 2}, Shape{3, 1}, Shape{4, 2}));

}  // namespace
}  // namespace ganymede::plan
