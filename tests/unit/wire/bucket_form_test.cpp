#include "common/wire/bucket_form.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "common/base/error.h"
#include "common/base/random.h"

namespace ganymede::wire {
namespace {

using config::ParameterWire;
using Bytes = std::vector<std::byte>;

/// Rows of 136 and 21 elements: tail blocks, rows of no whole words, parameters that begin anywhere, and gaps.
config::Config with_experts(int ranks, ParameterWire wire = ParameterWire::fp8) {
  config::Config config;
  config.model.layers = 2;
  config.model.dense_layers = 1;
  config.model.hidden = 136;
  config.model.experts = 6;
  config.model.expert_ffn = 21;
  config.parallel.ranks = ranks;
  config.data.rows_per_step = ranks;
  config.wire.expert_gather = wire;
  return config;
}

struct Held {
  Held(int ranks, int rank, ParameterWire wire = ParameterWire::fp8)
      : placement(placement::build(with_experts(ranks, wire), rank)),
        bucket(placement.buckets[static_cast<std::size_t>(placement.bucket("layer.1.experts"))]),
        form(bucket, placement.parameters, wire) {}

  /// Values keyed by flat element, gaps zero.
  std::vector<float> values() const {
    std::vector<float> flat(static_cast<std::size_t>(bucket.elements));
    for (const placement::PlacedParameter& placed : bucket.parameters) {
      for (std::int64_t i = 0; i < placement.parameters[placed.parameter].elements(); i++) {
        auto at = static_cast<std::size_t>(placed.offset + i);
        flat[at] = static_cast<float>(uniform(3, 4, at) - 0.5);
      }
    }
    return flat;
  }
  Bytes encode() const {
    Bytes bytes(static_cast<std::size_t>(form.shard_bytes()));
    std::vector<float> flat = values();
    std::int64_t begin = bucket.shard_begin(), end = begin + bucket.shard_elements();
    EXPECT_EQ(form.encode(begin, end, flat.data() + begin, bytes.data()).count, 0);
    return bytes;
  }

  placement::Placement placement;
  const placement::Bucket& bucket;
  BucketForm form;
};

TEST(BucketForm, ShardsOfAnyWorldTogetherAreTheBytesOfOneRank) {
  Held one(1, 0);
  Bytes whole = one.encode();
  EXPECT_EQ(static_cast<std::int64_t>(whole.size()), one.form.bytes());
  for (int ranks : {2, 3, 4, 5, 6, 9}) {
    Bytes together;
    for (int rank = 0; rank < ranks; rank++) {
      Held held(ranks, rank);
      Bytes shard = held.encode();
      EXPECT_EQ(held.form.cut()[static_cast<std::size_t>(rank)], together.size());
      together.insert(together.end(), shard.begin(), shard.end());
    }
    EXPECT_EQ(together, whole) << ranks << " ranks";
  }
}

TEST(BucketForm, ElementsInAnyPortionsGiveTheSameBytes) {
  for (int ranks : {1, 5}) {
    Held held(ranks, ranks / 2);
    Bytes whole = held.encode();
    std::vector<float> flat = held.values();
    std::int64_t begin = held.bucket.shard_begin(), end = begin + held.bucket.shard_elements();
    for (std::int64_t portion : {1, 5, 127, 128, 1000}) {
      Bytes parts(whole.size());
      for (std::int64_t at = begin; at < end; at += portion) {
        held.form.encode(at, std::min(at + portion, end), flat.data() + begin, parts.data());
      }
      EXPECT_EQ(parts, whole) << portion;
    }
  }
}

TEST(BucketForm, PartsDecodeIntoTheFlatArrayOfTheBucket) {
  for (int ranks : {1, 4, 5}) {
    Held held(ranks, 0);
    Bytes whole = Held(1, 0).encode();
    std::vector<float> values = held.values();
    std::vector<float> at_once(values.size(), -1), in_parts(values.size(), -1);
    held.form.decode(0, held.bucket.elements, whole.data(), at_once.data());
    for (int i = ranks - 1; i >= 0; i--) {
      auto member = static_cast<std::size_t>(i);
      held.form.decode(held.bucket.cut[member], held.bucket.cut[member + 1], whole.data() + held.form.cut()[member],
                       in_parts.data());
    }
    EXPECT_EQ(at_once, in_parts);
    for (std::size_t i = 0; i < values.size(); i++) {
      ASSERT_NEAR(at_once[i], values[i], 0.5 * 0.0358) << i;
      ASSERT_TRUE(values[i] != 0 || at_once[i] == 0) << "gaps are zero";
    }
  }
}

TEST(BucketForm, NonFiniteValueIsNamedByItsFlatElement) {
  Held held(2, 1);
  std::vector<float> flat = held.values();
  std::int64_t begin = held.bucket.shard_begin(), end = begin + held.bucket.shard_elements();
  const placement::PlacedParameter& last = held.bucket.parameters.back();
  flat[static_cast<std::size_t>(last.offset + 31)] = std::numeric_limits<float>::quiet_NaN();
  Bytes bytes(static_cast<std::size_t>(held.form.shard_bytes()));
  NonFinite found = held.form.encode(begin, end, flat.data() + begin, bytes.data());
  EXPECT_EQ(found.count, 1);
  EXPECT_EQ(found.first, last.offset + 31);
}

TEST(BucketForm, PlainFormatsAreTheFlatArray) {
  for (auto [wire, size] : {std::pair{ParameterWire::fp32, 4}, std::pair{ParameterWire::bf16, 2}}) {
    Held held(3, 1, wire);
    EXPECT_EQ(held.form.bytes(), held.bucket.elements * size);
    EXPECT_EQ(held.form.shard_bytes(), held.bucket.shard_elements() * size);
    EXPECT_EQ(held.form.byte_of(17), 17 * size);
  }
}

TEST(BucketForm, TakesAByteAValueAndAScaleABlock) {
  Held held(1, 0);
  std::int64_t expert = 21 * (2 * 4 + 136) * 2 + 136 * (4 + 24);  // gate and up: rows of 136; down: rows of 21
  EXPECT_EQ(held.form.bytes(), 6 * expert);
}

TEST(WorkingForm, EachBucketHasTheFormatOfItsKind) {
  config::Config config = with_experts(2);
  config.compute.dtype = config::Dtype::bf16;
  config.wire.dense_gather = ParameterWire::bf16;
  placement::Placement placement = placement::build(config, 1);
  WorkingForm form = working_form(config, placement);
  std::int64_t end = 0;
  for (std::size_t b = 0; b < placement.buckets.size(); b++) {
    bool experts = placement.buckets[b].kind == model_spec::BucketKind::experts;
    EXPECT_EQ(form.buckets[b].wire(), experts ? ParameterWire::fp8 : ParameterWire::bf16);
    EXPECT_GE(form.offset[b], end);
    EXPECT_EQ(form.offset[b] % 32, 0);
    end = form.offset[b] + form.buckets[b].shard_bytes();
  }
  EXPECT_GE(form.bytes, end);
  EXPECT_LT(form.bytes, end + 64);
}

TEST(WorkingForm, PlainFormatsLieWhereTheMasterHasThem) {
  config::Config config = with_experts(3, ParameterWire::fp32);
  placement::Placement placement = placement::build(config, 2);
  WorkingForm form = working_form(config, placement);
  for (std::size_t b = 0; b < placement.buckets.size(); b++) {
    EXPECT_EQ(form.offset[b], placement.buckets[b].shard_offset * 4);
  }
}

}  // namespace
}  // namespace ganymede::wire
