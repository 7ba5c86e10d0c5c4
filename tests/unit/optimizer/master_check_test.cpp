#include "services/optimizer/master_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "services/optimizer/working_copy.h"
#include "tests/unit/optimizer/cell.h"

namespace ganymede::optimizer {
namespace {

using config::ParameterWire;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string finding(Cell& cell) {
  try {
    check_master(cell.placement, cell.memory, cell.engine().under_way(), [] {});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void step(Cell& cell) {
  cell.decide();
  UpdateEngine engine = cell.engine();
  cell.finish_with_matrices(engine);
}

/// What a kill in the middle of bringing a tile into place leaves: any part of it.
void tear(Cell& cell, const Cell::Death& death) {
  if (!death.tile || death.tile->kind != step_protocol::TileActionKind::copy) return;
  const placement::Chunk& chunk = cell.chunk_of(*death.tile);
  if (chunk.phase != placement::Phase::state)
    cell.memory.master[static_cast<std::size_t>(chunk.shard_offset + death.tile->tile.from)] = 77;
}

TEST(MasterCheck, NoKillOfAServerLooksLikeMemoryThatErrs) {
  for (ParameterWire wire : {ParameterWire::fp32, ParameterWire::bf16, ParameterWire::fp8}) {
    for (const config::Config& config : {Cell::small_config(wire), Cell::muon_config(wire)}) {
      Cell cell(config);
      step(cell);
      EXPECT_EQ(finding(cell), "");
      cell.decide();
      int deaths = 0;
      cell.finish_with_deaths([&](const Cell::Death& death) {
        deaths++;
        tear(cell, death);
        EXPECT_EQ(finding(cell), "");
      });
      EXPECT_GT(deaths, 10);
      EXPECT_EQ(finding(cell), "");
    }
  }
}

/// Of each format that the cell has: the last range of a bucket that the next step does not begin with.
std::vector<placement::OwnedRange> ranges(Cell& cell) {
  std::map<bool, placement::OwnedRange> found;
  int first = cell.placement.chunks.front().bucket;
  for (const placement::OwnedRange& range : cell.placement.owned)
    if (range.bucket != first) found[by_blocks(cell.memory, range.bucket)] = range;
  std::vector<placement::OwnedRange> all;
  for (const auto& [blocks, range] : found) all.push_back(range);
  return all;
}

TEST(MasterCheck, ChangedBitInTheMasterOrInItsWorkingCopyIsNamed) {
  for (ParameterWire wire : {ParameterWire::fp32, ParameterWire::bf16, ParameterWire::fp8}) {
    Cell cell(Cell::small_config(wire));
    step(cell);
    auto checked = ranges(cell);
    EXPECT_EQ(checked.size(), wire == ParameterWire::fp8 ? 2u : 1u);
    for (const placement::OwnedRange& range : checked) {
      auto bucket = static_cast<std::size_t>(range.bucket);
      bool blocks = by_blocks(cell.memory, range.bucket);
      std::string name = blocks ? cell.placement.buckets[bucket].name : cell.placement.parameters[range.parameter].name;
      auto* value = reinterpret_cast<std::byte*>(
          &cell.memory.master[static_cast<std::size_t>(range.shard_offset + range.count - 1)]);
      std::byte& exponent = value[3];
      std::byte& working = cell.memory.working[static_cast<std::size_t>(
          cell.memory.working_form.offset[bucket] + cell.memory.working_form.buckets[bucket].shard_bytes() - 1)];
      for (std::byte* changed : {&exponent, &working}) {
        *changed ^= std::byte{0x40};
        EXPECT_THAT(finding(cell), AllOf(HasSubstr("The master of " + (blocks ? "bucket " + name : name)),
                                         HasSubstr("memory of rank 0"), HasSubstr("from its last checkpoint")));
        *changed ^= std::byte{0x40};
        EXPECT_EQ(finding(cell), "");
      }
    }
  }
}

}  // namespace
}  // namespace ganymede::optimizer
