#include "services/data/pack.h"

#include <map>
#include <set>

#include "services/data/commands.h"
#include "services/data/dataset.h"
#include "services/data/documents.h"
#include "services/data/sources.h"
#include "services/data/token_writer.h"
#include "tests/unit/data/workspace.h"

namespace ganymede::data {
namespace {

using Pack = Workspace;
using Sources = Workspace;

/// Text of every document, put together from the rows.
std::map<std::uint32_t, std::string> texts_in_rows(const Dataset& dataset, std::uint64_t first, std::uint64_t end) {
  auto tokenizer = dataset.open_tokenizer();
  std::map<std::uint32_t, std::map<std::uint64_t, std::vector<std::uint32_t>>> pieces;
  for (std::uint64_t i = first; i < end; ++i) {
    for (const Segment& segment : dataset.row(i).segments) {
      std::vector<std::int32_t> tokens(segment.length);
      dataset.tokens(segment.first, tokens);
      pieces[segment.document][segment.first].assign(tokens.begin(), tokens.end());
    }
  }
  std::map<std::uint32_t, std::string> texts;
  for (const auto& [document, parts] : pieces) {
    std::vector<std::uint32_t> ids;
    for (const auto& [at, part] : parts) ids.insert(ids.end(), part.begin(), part.end());
    texts[document] = decode(*tokenizer, ids);
  }
  return texts;
}

TEST_F(Pack, EveryDocumentIsRecoveredFromTheRows) {
  std::vector<std::string> written = write_documents(150);
  for (const char* tokenizer : {"bytes", "train:300"}) {
    PackOptions options = this->options();
    options.tokenizer = tokenizer;
    options.to = path(tokenizer);
    Meta meta = pack(options);
    EXPECT_EQ(meta.documents, written.size());
    Dataset dataset(options.to);
    dataset.verify();
    auto texts = texts_in_rows(dataset, 0, meta.rows());
    ASSERT_EQ(texts.size(), written.size());
    for (std::uint32_t i = 0; i < written.size(); ++i) EXPECT_EQ(texts[i], written[i]);
    EXPECT_GT(meta.fill(), 0.99);
  }
}

TEST_F(Pack, DocumentsAreWhollyInOnePartChosenByTheirText) {
  write_documents(200);
  Meta meta = pack(options());
  EXPECT_EQ(meta.split, "documents");
  Dataset dataset(path("set"));
  auto train = texts_in_rows(dataset, 0, meta.train_rows);
  auto validation = texts_in_rows(dataset, meta.train_rows, meta.rows());
  EXPECT_EQ(train.size() + validation.size(), 200u);
  EXPECT_GT(validation.size(), 20u);
  EXPECT_LT(validation.size(), 70u);
  for (const auto& [document, text] : validation) EXPECT_TRUE(held_out(text, 0.2));
  for (const auto& [document, text] : train) EXPECT_FALSE(held_out(text, 0.2));
}

TEST_F(Pack, SameInputGivesTheSameBytes) {
  write_documents(60);
  for (const char* tokenizer : {"bytes", "train:300"}) {
    PackOptions one = options(), two = options();
    one.tokenizer = two.tokenizer = tokenizer;
    one.to = path(fmt::format("one {}", tokenizer));
    two.to = path(fmt::format("two {}", tokenizer));
    pack(one);
    pack(two);
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(one.to)) {
      ++files;
      std::string name = entry.path().filename().string();
      EXPECT_EQ(os::read_file(one.to + "/" + name), os::read_file(two.to + "/" + name)) << name;
    }
    EXPECT_GE(files, 3u);
    two.seed = 2;
    two.to = path(fmt::format("other {}", tokenizer));
    EXPECT_NE(pack(two).hash(), Dataset(one.to).meta().hash());
  }
}

TEST_F(Pack, ReadsJsonLines) {
  write("text/a.jsonl",
        "{\"text\": \"first\\nline\"}\n"
        "\n"
        "{\"text\": \"second \\u00df\", \"more\": 1}\n"
        "not json\n{\"text\": 5}\n[1]\n{\"other\": \"x\"}\n{\"text\": \"\"}\n{\"text\": \"a\\u0000b\"}\n"
        "{\"text\": \"bad \xff\"}\n"
        "{\"text\": \"last, without a line end\"}");
  Meta meta = pack(options());
  EXPECT_EQ(meta.skipped.bad_lines, 5u);
  EXPECT_EQ(meta.skipped.empty, 1u);
  EXPECT_EQ(meta.skipped.binary, 1u);
  Dataset dataset(path("set"));
  auto texts = texts_in_rows(dataset, 0, meta.rows());
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[0], "first\nline");
  EXPECT_EQ(texts[1], "second ß");
  EXPECT_EQ(texts[2], "last, without a line end");
}

TEST_F(Pack, OddFilesAreCountedAndSkipped) {
  write("text/empty.txt", "");
  write("text/one.txt", "x");
  write("text/binary.txt", std::string("a\0b", 3));
  write("text/latin1.txt", "caf\xe9 au lait");
  write("text/huge_line.txt", std::string(100'000, 'y'));
  Meta bytes = pack(options());
  EXPECT_EQ(bytes.documents, 3u);  // bytes need no UTF-8
  EXPECT_EQ(bytes.skipped.describe(), "1 binary, 1 empty");
  write("text/code.txt", [] {
    std::string text;
    for (int i = 0; i < 500; ++i) text += fmt::format("value_{} = {} + other\n", i, i * i);
    return text;
  }());
  PackOptions pieces = options();
  pieces.tokenizer = "train:300";
  pieces.to = path("pieces");
  Meta meta = pack(pieces);
  EXPECT_EQ(meta.documents, 3u);
  EXPECT_EQ(meta.skipped.describe(), "1 binary, 1 not UTF-8, 1 empty");
}

TEST_F(Pack, NothingToPackIsOneSentence) {
  write("text/empty.txt", "");
  write("text/binary.txt", std::string("\0", 1));
  Error error = error_of([&] { pack(options()); });
  EXPECT_EQ(error.code(), ExitCode::usage);
  expect_one_sentence(error);
  PackOptions none = options();
  none.extensions = {".nothing"};
  EXPECT_EQ(error_of([&] { pack(none); }).code(), ExitCode::usage);
  none.sources = {path("missing")};
  EXPECT_EQ(error_of([&] { pack(none); }).code(), ExitCode::usage);
  none.sources.clear();
  EXPECT_EQ(error_of([&] { pack(none); }).code(), ExitCode::usage);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_), {}), 1) << "only the sources are left";
}

TEST_F(Pack, OneLargeFileHoldsOutItsTail) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += fmt::format("line {} ", i);
  write("text/book.txt", text);
  Meta meta = pack(options());
  EXPECT_EQ(meta.split, "tail");
  EXPECT_EQ(meta.validation_rows, (meta.rows() * 2 + 9) / 10);
  EXPECT_EQ(texts_in_rows(Dataset(path("set")), 0, meta.rows())[0], text);
}

TEST_F(Pack, TooFewRowsForAStepIsRefused) {
  write_documents(3);
  PackOptions options = this->options();
  options.rows_per_step = 1000;
  Error error = error_of([&] { pack(options); });
  EXPECT_EQ(error.code(), ExitCode::usage);
  EXPECT_NE(std::string(error.what()).find("a step takes 1000"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(options.to));
}

TEST_F(Pack, StopsBeforeMaxBytes) {
  for (int i = 0; i < 10; ++i) write(fmt::format("text/{}.txt", i), std::string(100, static_cast<char>('a' + i)));
  PackOptions options = this->options();
  options.max_bytes = 350;
  EXPECT_EQ(pack(options).text_bytes, 300u);
}

TEST_F(Pack, SaysWhatMaxBytesLeftOut) {
  write("text/0.txt", std::string(100, 'a'));
  write("text/1.jsonl",
        "{\"text\": \"" + std::string(100, 'b') + "\"}\n{\"text\": \"" + std::string(100, 'c') + "\"}\n");
  write("text/2.txt", std::string(100, 'd'));
  PackOptions options = this->options();
  options.max_bytes = 250;
  testing::internal::CaptureStdout();
  pack_command(options, false);
  EXPECT_NE(testing::internal::GetCapturedStdout().find(
                "\nleft out: 213 B in 2 of the sources' files, beyond max-bytes (250 B)\n"),
            std::string::npos);
  options.to = path("all");
  options.max_bytes = 400;
  testing::internal::CaptureStdout();
  pack_command(options, false);
  EXPECT_EQ(testing::internal::GetCapturedStdout().find("left out"), std::string::npos);
}

TEST_F(Pack, NeverReplacesWhatIsThere) {
  write_documents(20);
  write("set/precious.txt", "keep me");
  Error error = error_of([&] { pack(options()); });
  EXPECT_EQ(error.code(), ExitCode::usage);
  EXPECT_EQ(os::read_file(path("set/precious.txt")), "keep me");
  std::filesystem::remove(path("set/precious.txt"));
  EXPECT_NO_THROW(pack(options()));  // an empty folder is as good as none
  std::filesystem::remove_all(path("set"));
  write("set", "a file");
  EXPECT_EQ(error_of([&] { pack(options()); }).code(), ExitCode::usage);
}

TEST_F(Sources, WalksFoldersInOrderWithoutFollowingLinks) {
  for (const char* name : {"text/b/z.txt", "text/b/a.txt", "text/a.txt", "text/c.md", "text/.txt", "outside/o.txt"})
    write(name, "x");
  std::filesystem::create_symlink(path("outside"), path("text/link"));
  std::filesystem::create_symlink(path("outside/o.txt"), path("text/link.txt"));
  std::filesystem::create_directory_symlink(path("text"), path("text/b/loop"));
  SourceFiles found = find_sources({path("text"), path("text/b/*.txt"), path("text/c.md")}, {".txt"});
  std::vector<std::string> names;
  for (const SourceFile& file : found.files) names.push_back(file.path.substr(root_.size() + 1));
  EXPECT_EQ(names, (std::vector<std::string>{"text/a.txt", "text/b/a.txt", "text/b/z.txt", "text/c.md"}));
}

TEST_F(Sources, PatternsExpandToFoldersAndMustMatch) {
  write("lib1/a.txt", "x");
  write("lib2/b.txt", "x");
  EXPECT_EQ(find_sources({path("lib*")}, {".txt"}).files.size(), 2u);
  write("odd[1].txt", "x");
  EXPECT_EQ(find_sources({path("odd[1].txt")}, {}).files.size(), 1u) << "a name is a name first";
  EXPECT_EQ(error_of([&] { find_sources({path("none*")}, {}); }).code(), ExitCode::usage);
}

TEST_F(Sources, FilesThatVanishAreCounted) {
  SourceFiles sources;
  sources.files = {{path("gone.txt"), 10}, {path("gone.jsonl"), 10}, {write("here.txt", "here"), 4}};
  int documents = 0;
  Skipped skipped = read_documents(sources, {}, [&](std::string&&, std::uint64_t) { ++documents; });
  EXPECT_EQ(documents, 1);
  EXPECT_EQ(skipped.unreadable, 2u);
}

}  // namespace
}  // namespace ganymede::data
