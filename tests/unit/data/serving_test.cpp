#include "services/data/serving.h"

#include <chrono>
#include <memory>
#include <thread>

#include "tests/unit/data/workspace.h"

namespace ganymede::data {
namespace {

/// Batch slots in plain memory.
struct Slots {
  Slots(std::size_t count, std::size_t rows, std::size_t seq_len)
      : words(count),
        headers(count * header_words),
        tokens(count * rows * seq_len),
        targets(tokens),
        documents(tokens) {
    for (auto& word : words) word = step_protocol::never;
    area = {words, headers, {tokens, targets, documents}, rows, seq_len};
  }
  std::vector<step_protocol::Word> words;
  std::vector<std::uint64_t> headers;
  std::vector<std::int32_t> tokens, targets, documents;
  SlotArea area;
};

/// File times are as coarse as the tick of the kernel.
void let_the_clock_tick() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

class Serving : public Workspace {
 protected:
  Serving() {
    write_documents(120);
    pack(options());
    dataset = std::make_unique<Dataset>(path("set"));
    order = std::make_unique<Order>(dataset->meta().bucket_rows, 1, 4, 1);
  }
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Order> order;
};

TEST_F(Serving, RowsHoldTheNextTokenOfTheSameDocumentAsTarget) {
  constexpr std::size_t length = 32;
  for (std::uint64_t i = 0; i < dataset->meta().rows(); ++i) {
    std::vector<std::int32_t> tokens(length), targets(length), documents(length);
    fill_row(*dataset, i, {tokens, targets, documents});
    Row row = dataset->row(i);
    std::uint32_t loss_tokens = 0;
    std::size_t at = 0;
    for (std::size_t s = 0; s < row.segments.size(); ++s) {
      for (std::uint32_t k = 0; k < row.segments[s].length; ++k, ++at) {
        std::uint64_t token = row.segments[s].first + k;
        bool last = token + 1 == dataset->document_begin(row.segments[s].document + 1);
        std::int32_t next = -1;
        if (!last) dataset->tokens(token + 1, std::span(&next, 1));
        ASSERT_EQ(targets[at], next) << "row " << i << ", position " << at;
        ASSERT_EQ(documents[at], static_cast<std::int32_t>(s));
        loss_tokens += next >= 0;
      }
    }
    EXPECT_EQ(loss_tokens, row.loss_tokens);
    for (; at < length; ++at) EXPECT_EQ(targets[at], -1);
  }
}

TEST_F(Serving, FillsSlotsAheadAndNotBeyondTheLastStep) {
  Slots slots(3, 4, 32);
  Server server(*dataset, *order, slots.area, {0, 4});
  EXPECT_EQ(server.serve(0, 100), 3);
  EXPECT_EQ(slots.words[1], 1u);
  EXPECT_EQ(slots.words[2], 2u);
  EXPECT_EQ(slots.words[0], 3u);
  EXPECT_EQ(server.serve(0, 100), 0);
  EXPECT_EQ(server.serve(2, 4), 1);  // steps 3 (there already) and 4
  EXPECT_EQ(slots.words[1], 4u);
  EXPECT_EQ(slots.words[2], 2u) << "step 5 does not exist";
}

TEST_F(Serving, NeverTouchesASlotWhoseStepIsNotDecided) {
  Slots slots(2, 4, 32);
  slots.words[1] = 3;  // a step that is still to be decided, as seen with decided_step = 2
  slots.words[0] = 6;  // cannot be: but whatever it is, it is not decided
  std::fill(slots.tokens.begin(), slots.tokens.end(), 77);
  std::vector<std::int32_t> before = slots.tokens;
  Server server(*dataset, *order, slots.area, {0, 4});
  EXPECT_THROW(server.serve(2, 100), Error);  // slot 1 claims step 3 but holds something else
  EXPECT_EQ(slots.tokens, before);
}

TEST_F(Serving, RowsOfAStepDoNotDependOnTheNumberOfRanks) {
  Slots whole(1, 4, 32);
  for (std::uint64_t step = 1; step < 30; ++step) {
    Server(*dataset, *order, whole.area, {0, 4}).serve(step - 1, step);
    for (int world : {1, 2, 4}) {
      int count = 4 / world;
      std::vector<std::int32_t> tokens, targets, documents;
      for (int rank = 0; rank < world; ++rank) {
        Slots part(1, static_cast<std::size_t>(count), 32);
        Server(*dataset, *order, part.area, {rank * count, count}).serve(step - 1, step);
        EXPECT_EQ(part.area.header(0).loss_tokens, whole.area.header(0).loss_tokens);
        EXPECT_EQ(part.area.header(0).rows, static_cast<std::uint64_t>(count));
        tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
        targets.insert(targets.end(), part.targets.begin(), part.targets.end());
        documents.insert(documents.end(), part.documents.begin(), part.documents.end());
      }
      EXPECT_EQ(tokens, whole.tokens);
      EXPECT_EQ(targets, whole.targets);
      EXPECT_EQ(documents, whole.documents);
    }
    auto counted = std::count_if(whole.targets.begin(), whole.targets.end(), [](std::int32_t t) { return t >= 0; });
    EXPECT_EQ(whole.area.header(0).loss_tokens, static_cast<std::uint64_t>(counted));
    EXPECT_EQ(whole.area.header(0).step, step);
  }
}

TEST_F(Serving, RestartedServerLeavesRightSlotsAlone) {
  Slots slots(4, 4, 32);
  Server(*dataset, *order, slots.area, {0, 4}).serve(10, 100);
  auto tokens = slots.tokens;
  Server restarted(*dataset, *order, slots.area, {0, 4});
  EXPECT_EQ(restarted.serve(10, 100), 0);
  EXPECT_EQ(slots.tokens, tokens);
  EXPECT_EQ(restarted.serve(11, 100), 1);
}

TEST_F(Serving, RestartedServerWritesATornSlotAgain) {
  Slots slots(4, 4, 32), fresh(4, 4, 32);
  Server(*dataset, *order, slots.area, {0, 4}).serve(10, 100);
  Server(*dataset, *order, fresh.area, {0, 4}).serve(11, 100);
  // Killed while it replaced step 11 by step 15: the word still names the decided step, the content is torn.
  std::fill_n(slots.tokens.begin() + 3 * 4 * 32, 50, 1);
  slots.headers[3 * header_words + 3] = 5;
  EXPECT_EQ(Server(*dataset, *order, slots.area, {0, 4}).serve(11, 100), 1);
  EXPECT_EQ(slots.tokens, fresh.tokens);
  EXPECT_EQ(slots.headers, fresh.headers);
}

TEST_F(Serving, AnotherDatasetUnderTheRunIsNoticed) {
  Slots slots(2, 4, 32);
  Server(*dataset, *order, slots.area, {0, 4}).serve(0, 100);
  PackOptions options = this->options();
  options.seed = 9;
  options.to = path("other");
  pack(options);
  Dataset other(path("other"));
  Order other_order(other.meta().bucket_rows, 1, 4, 1);
  Server server(other, other_order, slots.area, {0, 4});
  expect_one_sentence(error_of([&] { server.serve(0, 100); }));
}

TEST_F(Serving, DatasetThatIsOverwrittenInPlaceIsNoticedThoughItsBlocksWereCompared) {
  Slots slots(2, 4, 32);
  Server server(*dataset, *order, slots.area, {0, 4});
  ASSERT_EQ(server.serve(0, 100), 2);
  let_the_clock_tick();
  std::string tokens = path("set/tokens.bin");
  ASSERT_LT(std::filesystem::file_size(tokens), block_bytes) << "one block, which was compared";
  std::fstream file(tokens, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(64);
  file << std::string(1000, 'x');
  file.close();
  std::vector<std::int32_t> before = slots.tokens;
  Error error = error_of([&] { server.serve(1, 100); });
  EXPECT_NE(std::string(error.what()).find("was changed while it is in use (tokens.bin"), std::string::npos)
      << error.what();
  expect_one_sentence(error);
  EXPECT_EQ(slots.tokens, before);
}

TEST_F(Serving, DatasetThatIsCutOffIsNoticedBeforeItIsRead) {
  Slots slots(2, 4, 32);
  Server server(*dataset, *order, slots.area, {0, 4});
  ASSERT_EQ(server.serve(0, 100), 2);
  std::filesystem::resize_file(path("set/index.bin"), 0);
  expect_one_sentence(error_of([&] { server.serve(1, 100); }));
}

TEST_F(Serving, NewPermissionsOrAnotherFileUnderItsNameAreNoChange) {
  Slots slots(2, 4, 32);
  Server server(*dataset, *order, slots.area, {0, 4});
  namespace fs = std::filesystem;
  fs::permissions(path("set/tokens.bin"), fs::perms::owner_read);
  fs::rename(path("set/index.bin"), path("set/old"));
  write("set/index.bin", "another file");
  EXPECT_EQ(server.serve(0, 100), 2);
}

TEST_F(Serving, BlocksAreComparedAgainWhenTheOldTimeWasPutBack) {
  Slots slots(2, 4, 32);
  Server server(*dataset, *order, slots.area, {0, 4});
  ASSERT_EQ(server.serve(0, 100), 2);
  let_the_clock_tick();
  std::string tokens = path("set/tokens.bin"), content = os::read_file(tokens);
  auto time = std::filesystem::last_write_time(tokens);
  write("set/tokens.bin", content.substr(0, 64) + std::string(content.size() - 64, 'x'));
  std::filesystem::last_write_time(tokens, time);
  expect_one_sentence(error_of([&] { server.serve(1, 100); }));
}

TEST_F(Serving, ValidationRowsAreDealtInBlocksAndPadded) {
  std::uint64_t there = dataset->meta().validation_rows;
  ASSERT_GE(there, 5u);
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < 5; ++i) total += dataset->row(dataset->meta().train_rows + i).loss_tokens;
  std::uint64_t counted = 0;
  for (int rank = 0; rank < 4; ++rank) {  // 5 rows over 4 ranks: blocks of 2, the last rank has padding only
    Slots slots(1, 2, 32);
    publish_validation(*dataset, slots.area, 5, rank);
    EXPECT_EQ(slots.words[0], validation_published);
    EXPECT_EQ(slots.area.header(0).loss_tokens, total);
    EXPECT_EQ(slots.area.header(0).rows, rank < 2 ? 2u : rank == 2 ? 1u : 0u);
    counted += static_cast<std::uint64_t>(
        std::count_if(slots.targets.begin(), slots.targets.end(), [](std::int32_t t) { return t >= 0; }));
    publish_validation(*dataset, slots.area, 5, rank);  // again, by a restarted server
    EXPECT_THROW(publish_validation(*dataset, slots.area, 4, rank), Error);
  }
  EXPECT_EQ(counted, total);
  EXPECT_EQ(used_validation_rows(*dataset, 3), 3u);
  EXPECT_EQ(used_validation_rows(*dataset, 1'000'000), there);
}

}  // namespace
}  // namespace ganymede::data
