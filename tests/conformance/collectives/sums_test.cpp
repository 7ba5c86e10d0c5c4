#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "common/collectives/sums.h"
#include "common/collectives/topology.h"
#include "tests/conformance/collectives/world.h"

namespace ganymede::collectives {
namespace {

class CollectiveSums : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Backends, CollectiveSums, testing::ValuesIn(settings()),
                         [](const auto& given) { return given.param.name; });

/// A contribution: the sums of such values depend on the order of the additions.
float value(int rank, std::size_t i) {
  return (static_cast<float>((i * 2654435761u + static_cast<unsigned>(rank) * 40503u) % 1000003) - 500000.0f) * 1e-3f;
}

std::uint16_t upper_half(float x) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16); }
float from_upper_half(std::uint16_t half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); }

/// Uneven parts, some empty, some beyond what is summed at once.
std::vector<std::int64_t> uneven_cut(int size) {
  constexpr std::int64_t sizes[] = {33, 0, 9001, 1, 20000};
  std::vector<std::int64_t> cut(size + 1, 0);
  for (int i = 0; i < size; ++i) cut[i + 1] = cut[i] + sizes[(i + size) % 5];
  return cut;
}

void expect_same(std::span<const float> sum, const std::function<float(std::size_t)>& expected) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    float want = expected(i);
    ASSERT_EQ(std::memcmp(&sum[i], &want, sizeof want), 0) << "element " << i << ": " << sum[i] << ", not " << want;
  }
}

TEST_P(CollectiveSums, Fp32ContributionsAreSummedInRankOrderWhateverTheNodes) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    auto cut = uneven_cut(world.size());
    auto values = member.memory<float>(cut.back());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(world.rank(), i);
    std::size_t begin = cut[world.rank()];
    auto sum = member.memory<float>(cut[world.rank() + 1] - begin);
    world.all_to_all_sum(std::as_bytes(values), Element::fp32, cut, sum)->wait(soon());
    expect_same(sum, [&](std::size_t i) {
      float expected = value(0, begin + i);
      for (int rank = 1; rank < world.size(); ++rank) expected += value(rank, begin + i);
      return expected;
    });
  });
}

TEST_P(CollectiveSums, Bf16ContributionsGiveTheBitsOfAnFp32SumOfTheSameValues) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    auto cut = uneven_cut(world.size());
    auto values = member.memory<std::uint16_t>(cut.back());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = upper_half(value(world.rank(), i));
    std::size_t begin = cut[world.rank()];
    auto sum = member.memory<float>(cut[world.rank() + 1] - begin);
    world.all_to_all_sum(std::as_bytes(values), Element::bf16, cut, sum)->wait(soon());
    expect_same(sum, [&](std::size_t i) {
      float expected = from_upper_half(upper_half(value(0, begin + i)));
      for (int rank = 1; rank < world.size(); ++rank) {
        expected += from_upper_half(upper_half(value(rank, begin + i)));
      }
      return expected;
    });
  });
}

/// Sums within each node in rank order, then over nodes.
float node_first(const std::vector<int>& nodes, std::size_t i) {
  float total = 0, node = 0;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    bool begins = rank == 0 || nodes[rank] != nodes[rank - 1];
    node = begins ? value(static_cast<int>(rank), i) : node + value(static_cast<int>(rank), i);
    bool ends = rank + 1 == nodes.size() || nodes[rank + 1] != nodes[rank];
    if (ends) total = nodes[rank] == nodes[0] ? node : total + node;
  }
  return total;
}

TEST_P(CollectiveSums, ReduceScatterSumsNodesFirstInPlaceToo) {
  run_worlds(GetParam(), [](Member& member, Communicator& world) {
    auto cut = uneven_cut(world.size());
    auto nodes = GetParam().nodes(world.size());
    std::size_t begin = cut[world.rank()], count = cut[world.rank() + 1] - begin;
    auto values = member.memory<float>(cut.back()), apart = member.memory<float>(count);
    for (bool in_place : {false, true}) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(world.rank(), i);
      std::span<float> sum = in_place ? values.subspan(begin, count) : apart;
      world.reduce_scatter(values, cut, sum)->wait(soon());
      expect_same(sum, [&](std::size_t i) { return node_first(nodes, begin + i); });
    }
  });
}

TEST(Sums, DoNotDependOnAlignmentOrOnHowAnArrayIsCut) {
  constexpr std::size_t count = 1003;
  std::vector<float> terms[3];
  for (int t = 0; t < 3; ++t) {
    for (std::size_t i = 0; i < count; ++i) terms[t].push_back(value(t, i));
  }
  const std::byte* from[3];
  std::vector<float> sum(count);
  for (std::size_t begin = 0, length = 1; begin < count; begin += length, length = length * 2 + 1) {
    for (int t = 0; t < 3; ++t) from[t] = reinterpret_cast<const std::byte*>(terms[t].data() + begin);
    sum_in_order(Element::fp32, from, std::min(length, count - begin), sum.data() + begin);
  }
  expect_same(sum, [&](std::size_t i) { return value(0, i) + value(1, i) + value(2, i); });
}

TEST(Shares, CoverTheWholeAndDifferByOneAtMost) {
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{10}, std::size_t{1} << 60}) {
    std::size_t at = 5;
    for (int i = 0; i < 7; ++i) {
      Range part = share({5, 5 + size}, 7, i);
      EXPECT_EQ(part.begin, at);
      EXPECT_LE(part.size() - size / 7, 1u);
      at = part.end;
    }
    EXPECT_EQ(at, 5 + size);
  }
}

}  // namespace
}  // namespace ganymede::collectives
