#include <gtest/gtest.h>

#include <thread>

#include "services/checkpoint/checkpoint_view.h"
#include "services/checkpoint/verify.h"
#include "services/optimizer/before_images.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/checkpoint/test_cell.h"

/// The two halves of a live snapshot against each other: the optimizer server's before-images and overwrites in one
/// thread, the checkpoint service's reads in another.
namespace ganymede::checkpoint {
namespace {

optimizer::CellMemory writer_memory(TestCell& cell) {
  optimizer::CellMemory memory;
  memory.control = cell.control().block;
  memory.master = cell.array(master_slot);
  for (const std::string& slot : test_slots) memory.state.push_back(cell.array(slot));
  memory.read_marks = cell.segment(shm::side_name(0)).span<step_protocol::Word>("read_marks");
  memory.image_flags = cell.segment(shm::side_name(0)).span<step_protocol::Word>("image_flags");
  memory.images = cell.segment(shm::side_name(0)).span<float>("images");
  return memory;
}

/// What the optimizer server does to one chunk in step `step`.
void overwrite(TestCell& cell, int index, std::uint64_t step) {
  const placement::Chunk& chunk = cell.placement().chunks[index];
  if (chunk.parameter < 0) return;
  const std::string& name = cell.placement().parameters[chunk.parameter].name;
  for (const std::string& slot : TestCell::all_slots()) {
    TestValues value(slot, name, step);
    std::span<float> values = cell.array(slot).subspan(chunk.shard_offset, chunk.count);
    for (std::int64_t i = 0; i < chunk.count; ++i) values[i] = value(chunk.first + i);
  }
}

TEST(LiveSnapshot, IsTheStateOfItsStepWhileTheNextOneOverwritesIt) {
  test::TemporaryFolder folder;
  config::Config config = test_config(1, 1);
  config.model.vocabulary = 8000;  // some dozens of chunks
  TestWorld world(config, folder.path());
  TestCell& cell = *world.cells[0];
  optimizer::CellMemory memory = writer_memory(cell);
  optimizer::BeforeImages images(cell.placement(), memory, 30, [] {});
  cell.fill(1);
  for (std::uint64_t step = 1; step < 12; ++step) {
    cell.order_snapshot(step, false);
    std::thread writer([&] {
      for (std::size_t chunk = 0; chunk < cell.placement().chunks.size(); ++chunk) {
        images.protect(static_cast<std::int64_t>(chunk), [] { return false; });
        overwrite(cell, static_cast<int>(chunk), step + 1);
      }
    });
    world.services[0]->serve();
    writer.join();
    world.services[0]->serve();
    ASSERT_EQ(world.launcher.committed_step, step);
    TestWorld other(config, folder.path());
    other.load(step);
    ASSERT_EQ(other.cells[0]->wrong_elements(step), 0) << "step " << step;
  }
}

}  // namespace
}  // namespace ganymede::checkpoint
