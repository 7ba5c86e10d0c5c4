#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/random.h"
#include "common/step_protocol/snapshot_machine.h"
#include "tests/unit/optimizer/cell.h"

namespace ganymede::optimizer {
namespace {

namespace sp = step_protocol;

/// The checkpoint service's half of rule 19: reads chunks in order; between the reading and the look at the flag other
/// things may happen.
class Reader {
 public:
  Reader(Cell& cell, std::uint64_t step) : cell_(cell), step_(step) {
    taken_.master.resize(cell.memory.master.size());
    taken_.state.assign(cell.memory.state.size(), taken_.master);
  }
  bool complete() const { return next_ == cell_.chunks(); }
  std::uint64_t next() const { return next_; }
  void read() {
    const placement::Chunk& chunk = cell_.placement.chunks[next_];
    std::copy_n(&cell_.memory.master[chunk.shard_offset], chunk.count, &taken_.master[chunk.shard_offset]);
    for (std::size_t i = 0; i < taken_.state.size(); i++) {
      std::copy_n(&cell_.memory.state[i][chunk.shard_offset], chunk.count, &taken_.state[i][chunk.shard_offset]);
    }
  }
  void settle() {
    const placement::Chunk& chunk = cell_.placement.chunks[next_];
    std::uint64_t flag = cell_.memory.image_flags[next_].load();
    if (sp::image_taken(flag, step_)) {
      const float* image = &cell_.memory.images[sp::image_slot(flag) * 3 * placement::chunk_elements];
      std::copy_n(image, chunk.count, &taken_.master[chunk.shard_offset]);
      for (std::size_t i = 0; i < taken_.state.size(); i++) {
        image += placement::chunk_elements;
        std::copy_n(image, chunk.count, &taken_.state[i][chunk.shard_offset]);
      }
      images++;
    }
    cell_.memory.read_marks[next_++].store(step_);
  }
  bool holds(const Values& values) const { return taken_.master == values.master && taken_.state == values.state; }

  int images = 0;

 private:
  Cell& cell_;
  std::uint64_t step_, next_ = 0;
  Values taken_;
};

TEST(Snapshot, IsArmedOnceAfterItsStep) {
  Cell cell(Cell::small_config());
  UpdateEngine engine = cell.engine();
  cell.decide({.snapshot_after = true});
  Cell::finish(engine);
  EXPECT_EQ(cell.memory.control->snapshot.load(), sp::armed_word(1));
  cell.memory.control->snapshot.store(sp::ended_word(1));
  Cell::finish(engine);
  UpdateEngine successor = cell.engine();
  Cell::finish(successor);
  EXPECT_EQ(cell.memory.control->snapshot.load(), sp::ended_word(1));
}

TEST(Snapshot, ServerThatMissedTheOrderArmsItBeforeTheNextCopy) {
  Cell cell(Cell::small_config());
  cell.decide({.snapshot_after = true});
  {
    UpdateEngine engine = cell.engine();
    while (cell.memory.words->chunks_done.load() < cell.chunks()) engine.advance();
  }
  cell.decide();
  Advance first = cell.engine().advance();
  EXPECT_EQ(first.action.kind, sp::UpdateActionKind::arm_snapshot);
  EXPECT_EQ(cell.memory.control->snapshot.load(), sp::armed_word(1));
}

struct Death {};

/// Reader and writer interleaved by keyed chance; the writer dies with a chance of 1 in `life` after each action, on a
/// tile or of the whole cell.
class Interleaving {
 public:
  Interleaving(Cell& cell, std::uint64_t key, int life) : reader(cell, 2), cell_(cell), key_(key), life_(life) {}

  void run() {
    for (bool committed = false; !committed;) {
      EngineOptions options = cell_.options();
      options.observed = [this](const TileEvent&) { others(); };
      UpdateEngine engine(cell_.placement, tables_of(cell_.config), cell_.memory, options);
      try {
        while (!committed) {
          committed = engine.advance().action.kind == sp::UpdateActionKind::await_decision;
          others();
        }
      } catch (const Death&) {
      }
    }
    while (!reader.complete()) read_half();
  }

  Reader reader;

 private:
  /// What happens between two actions of the writer. A chunk takes some 50 of them.
  void others() {
    turn_++;
    if (!reader.complete() && uniform(key_, 1, turn_) < 0.02) read_half();
    if (uniform(key_, 2, turn_) * life_ < 1) throw Death{};
  }
  void read_half() {
    half_ ? reader.settle() : reader.read();
    half_ = !half_;
  }

  Cell& cell_;
  std::uint64_t key_, turn_ = 0;
  int life_;
  bool half_ = false;
};

void interleave(std::uint64_t key, int life, bool skip_second) {
  Cell cell(Cell::small_config(), 64);
  UpdateEngine engine = cell.engine();
  cell.decide();
  Cell::finish(engine);
  cell.decide({.snapshot_after = true});
  Cell::finish(engine);
  Values expected = cell.values();
  cell.decide({.apply = !skip_second});
  Interleaving interleaving(cell, key, life);
  interleaving.run();
  EXPECT_TRUE(interleaving.reader.holds(expected)) << key;
  EXPECT_EQ(interleaving.reader.images > 0, !skip_second);
  EXPECT_EQ(cell.memory.control->snapshot.load(), sp::armed_word(2));
}

TEST(Snapshot, HoldsTheStateOfItsStepUnderAnyInterleaving) {
  for (std::uint64_t key = 0; key < 20; key++) interleave(key, 1000000, false);
}

TEST(Snapshot, HoldsTheStateOfItsStepWhenTheServerDies) {
  for (std::uint64_t key = 0; key < 20; key++) interleave(key, 2 + static_cast<int>(key % 7), false);
}

TEST(Snapshot, SkippedStepNeedsNoImages) { interleave(3, 5, true); }

TEST(Snapshot, SlotsOfReadChunksAreUsedAgain) {
  Cell cell(Cell::small_config(), 3);
  {
    UpdateEngine engine = cell.engine();
    cell.decide({.snapshot_after = true});
    Cell::finish(engine);
  }
  Values expected = cell.values();
  cell.decide();
  Reader reader(cell, 1);
  int overwritten = 0;
  EngineOptions options = cell.options();
  options.observed = [&](const TileEvent& event) {
    bool last = event.tile.from + event.tile.count == cell.chunk_of(event).count;
    // After every third overwrite the reader takes what was saved.
    if (event.kind != sp::TileActionKind::count || !last || ++overwritten % 3 != 0) return;
    while (reader.next() <= event.tile.chunk) reader.read(), reader.settle();
  };
  UpdateEngine engine(cell.placement, tables_of(cell.config), cell.memory, options);
  Cell::finish(engine);
  while (!reader.complete()) reader.read(), reader.settle();
  EXPECT_TRUE(reader.holds(expected));
  EXPECT_GT(reader.images, 3);
}

TEST(Snapshot, IsCancelledWhenTheReaderFreesNothing) {
  Cell cell(Cell::small_config(), 2);
  EngineOptions options = cell.options();
  options.side_wait_seconds = 0.02;
  UpdateEngine engine(cell.placement, tables_of(cell.config), cell.memory, options);
  cell.decide({.snapshot_after = true});
  Cell::finish(engine);
  cell.decide();
  Cell::finish(engine);
  EXPECT_EQ(cell.committed(), 2u);
  EXPECT_EQ(cell.memory.control->snapshot.load(), sp::ended_word(1));
}

TEST(Snapshot, UpdateWaitsForASlowReader) {
  Cell cell(Cell::small_config(), 2);
  EngineOptions options = cell.options();
  std::atomic<int> waits{0};
  options.waits_for_reader = [&] { ++waits; };
  UpdateEngine engine(cell.placement, tables_of(cell.config), cell.memory, options);
  cell.decide({.snapshot_after = true});
  Cell::finish(engine);
  EXPECT_EQ(waits, 0);
  cell.decide();
  std::thread reader([&] {
    for (auto& mark : cell.memory.read_marks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      mark.store(1);
    }
  });
  Cell::finish(engine);
  reader.join();
  EXPECT_GT(waits, 0) << "it says so, and is not blamed";
  EXPECT_EQ(cell.committed(), 2u);
  EXPECT_EQ(cell.memory.control->snapshot.load(), sp::armed_word(1));
}

/// Each chunk alone would be in time; the peers wait for the whole bucket.
TEST(Snapshot, IsCancelledWhenOneBucketWaitsForLong) {
  config::Config config = Cell::small_config();
  config.model.vocabulary = 10000;
  Cell cell(config, 2);
  EngineOptions options = cell.options();
  options.side_wait_seconds = 0.1;
  UpdateEngine engine(cell.placement, tables_of(cell.config), cell.memory, options);
  cell.decide({.snapshot_after = true});
  Cell::finish(engine);
  cell.decide();
  std::atomic<bool> updated{false};
  std::thread reader([&] {
    for (auto& mark : cell.memory.read_marks) {
      if (!updated) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      mark.store(1);
    }
  });
  Cell::finish(engine);
  updated = true;
  reader.join();
  EXPECT_EQ(cell.committed(), 2u);
  EXPECT_EQ(cell.memory.control->snapshot.load(), sp::ended_word(1));
}

TEST(Snapshot, FinishingServerLeavesTheChunkAsItWas) {
  Cell cell(Cell::small_config(), 1);
  EngineOptions options = cell.options();
  bool finishing = false;
  options.finishing = [&] { return finishing; };
  UpdateEngine engine(cell.placement, tables_of(cell.config), cell.memory, options);
  cell.decide({.snapshot_after = true});
  Cell::finish(engine);
  cell.decide();
  finishing = true;
  Advance done;
  do done = engine.advance();
  while (done.carried_out);
  EXPECT_EQ(done.action.kind, sp::UpdateActionKind::update);
  Values before = cell.values();
  engine.advance();
  EXPECT_TRUE(cell.values() == before);
}

}  // namespace
}  // namespace ganymede::optimizer
