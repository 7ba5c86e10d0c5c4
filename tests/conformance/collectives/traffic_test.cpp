#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/collectives/traffic_forms.h"
#include "tests/conformance/collectives/world.h"

namespace ganymede::collectives {
namespace {

using testing::Eq;

/// Settings whose operations move the least bytes: gloo's own communicator knows no nodes.
std::vector<Setting> frugal() {
  std::vector<Setting> all = connected();
  std::erase_if(all, [](const Setting& setting) { return setting.plain; });
  return all;
}

class CollectiveTraffic : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Backends, CollectiveTraffic, testing::ValuesIn(frugal()),
                         [](const auto& given) { return given.param.name; });

SentBytes counted(const Communicator& world, const std::string& operation, const std::string& wire) {
  SentBytes bytes;
  for (const Traffic& traffic : world.traffic()) {
    if (traffic.operation != operation || traffic.cargo.wire != wire) continue;
    bytes.inside_node += traffic.inside_node();
    bytes.between_nodes += traffic.between_nodes;
  }
  return bytes;
}

MATCHER_P(IsBytes, expected, "") {
  *result_listener << arg.inside_node << " inside and " << arg.between_nodes << " between nodes";
  return arg == expected;
}

TEST_P(CollectiveTraffic, CountersEqualTheClosedForms) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    int size = world.size(), me = world.rank();
    NodeMap map(GetParam().nodes(size), size, me);
    std::vector<std::size_t> sizes(size);
    for (int i = 0; i < size; ++i) sizes[i] = static_cast<std::size_t>(i * 7919 % 10007);
    auto offsets = boundaries(sizes);
    auto mine = member.memory<std::byte>(sizes[me]), all = member.memory<std::byte>(offsets.back());
    world.all_gather(mine, all, offsets, {"experts", "fp8"})->wait(soon());
    EXPECT_THAT(counted(world, "all_gather", "fp8"), IsBytes(all_gather_bytes(map, offsets)));

    std::vector<std::int64_t> cut(offsets.begin(), offsets.end());
    auto values = member.memory<float>(offsets.back()), sum = member.memory<float>(sizes[me]);
    world.reduce_scatter(values, cut, sum, {"dense", "fp32"})->wait(soon());
    EXPECT_THAT(counted(world, "reduce_scatter", "fp32"), IsBytes(reduce_scatter_bytes(map, cut)));
    world.all_to_all_sum(std::as_bytes(values), Element::fp32, cut, sum, {"dense", "fp32"})->wait(soon());
    EXPECT_THAT(counted(world, "all_to_all_sum", "fp32"), IsBytes(all_to_all_sum_bytes(map, cut, 4)));
    world.all_to_all_sum(std::as_bytes(values), Element::bf16, cut, sum, {"experts", "bf16"})->wait(soon());
    EXPECT_THAT(counted(world, "all_to_all_sum", "bf16"), IsBytes(all_to_all_sum_bytes(map, cut, 2)));

    auto to = member.memory<std::byte>(sizes[me] * size);
    std::vector<std::size_t> receive_offsets;
    for (int i = 0; i <= size; ++i) receive_offsets.push_back(sizes[me] * i);
    world.all_to_all(all, offsets, to, receive_offsets, {"dispatch", "bf16"})->wait(soon());
    EXPECT_THAT(counted(world, "all_to_all", "bf16"), IsBytes(all_to_all_bytes(map, sizes)));
  });
}

TEST(TrafficForms, APartCrossesOnceIntoEachOtherNode) {
  // Two nodes of two, ten bytes each: ten bytes to the other node; ten of its own and ten that it fetched to its peer.
  NodeMap map({0, 0, 1, 1}, 4, 1);
  EXPECT_THAT(all_gather_bytes(map, std::vector<std::size_t>{0, 10, 20, 30, 40}), IsBytes(SentBytes{20, 10}));
  // Of the sums for the other node half is this member's; its peer reads its own part and its half from it.
  EXPECT_THAT(reduce_scatter_bytes(map, std::vector<std::int64_t>{0, 10, 20, 30, 40}), IsBytes(SentBytes{80, 40}));
}

TEST_P(CollectiveTraffic, IsCountedByBucketAndWire) {
  run_world(GetParam(), GetParam().worlds.back(), [](Member& member, Communicator& world) {
    std::vector<std::size_t> offsets = boundaries(std::vector<std::size_t>(world.size(), 1000));
    auto mine = member.memory<std::byte>(1000), all = member.memory<std::byte>(offsets.back());
    world.all_gather(mine, all, offsets, {"dense", "bf16"})->wait(soon());
    world.all_gather(mine, all, offsets, {"experts", "bf16"})->wait(soon());
    world.all_gather(mine, all, offsets, {"experts", "bf16"})->wait(soon());
    std::uint64_t dense = 0, experts = 0;
    for (const Traffic& traffic : world.traffic()) {
      EXPECT_THAT(traffic.operation, Eq("all_gather"));
      (traffic.cargo.bucket == "dense" ? dense : experts) += traffic.bytes_sent;
    }
    EXPECT_GT(dense, 0u);
    EXPECT_EQ(experts, 2 * dense);
  });
}

}  // namespace
}  // namespace ganymede::collectives
