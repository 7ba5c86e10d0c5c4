#include "services/data/tokenizer.h"

#include "services/data/tokenizer_training.h"
#include "services/data/utf8.h"
#include "tests/unit/data/workspace.h"

namespace ganymede::data {
namespace {

std::string code(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text +=
        fmt::format("def function_{}(argument):\n    if argument > {}:\n\t\treturn 'naïve ☃ {}'\n\n", i % 17, i, i * 7);
  return text;
}

const std::string& trained_model() {
  static const std::string model = [] {
    TrainingSample sample(1, training_bytes, 1);
    sample.add(code(200));
    return train_tokenizer(sample.lines(), 340);
  }();
  return model;
}

std::vector<std::uint32_t> encode(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::uint32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

TEST(BytesTokenizer, IdsAreBytesAndZeroEndsADocument) {
  auto tokenizer = make_bytes_tokenizer();
  EXPECT_EQ(encode(*tokenizer, "a\xff"), (std::vector<std::uint32_t>{97, 255}));
  EXPECT_EQ(decode(*tokenizer, {104, 105, 0}), "hi");
  EXPECT_EQ(tokenizer->identity().end_of_document, 0);
  EXPECT_EQ(error_of([&] { tokenizer->bytes_of(256, true); }).code(), ExitCode::usage);
}

TEST(TrainedTokenizer, KeepsEveryByteOfAText) {
  auto tokenizer = make_sentencepiece_tokenizer(trained_model(), "train:340", "model");
  EXPECT_EQ(tokenizer->identity().vocabulary, 340);
  EXPECT_GE(tokenizer->identity().end_of_document, 0);
  for (const std::string& text :
       {code(3), std::string("  leading and  double  blanks \n\n\ttabs\r\n"), std::string("日本語 \xf0\x9f\x9a\x80 ß"),
        std::string("</s><unk><0x41>"), std::string("\x01\x02\x7f")}) {
    EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, text)), text);
  }
  EXPECT_LT(encode(*tokenizer, code(20)).size(), code(20).size() / 2);
}

TEST(TrainedTokenizer, SameTextGivesTheSameModel) {
  TrainingSample sample(1, training_bytes, 1);
  sample.add(code(200));
  EXPECT_EQ(train_tokenizer(sample.lines(), 340), trained_model());
}

TEST(TrainedTokenizer, WritesBytesOfACharacterOneByOne) {
  auto tokenizer = make_sentencepiece_tokenizer(trained_model(), "train:340", "model");
  std::vector<std::uint32_t> ids = encode(*tokenizer, "\xf0\x9f\x9a\x80");  // not in the vocabulary
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(tokenizer->bytes_of(ids[0], true), "\xf0");
}

TEST(TrainedTokenizer, TooLittleTextIsOneSentence) {
  for (int vocabulary : {100, 8192}) {
    Error error = error_of([&] { train_tokenizer({"hello\n", "world\n"}, vocabulary); });
    EXPECT_EQ(error.code(), ExitCode::usage);
    expect_one_sentence(error);
  }
  expect_one_sentence(error_of([] { train_tokenizer({}, 340); }));
}

TEST(TrainingSample, IsSpreadOverTheCorpusAndBounded) {
  TrainingSample sample(1'000'000, 100'000, 1), again(1'000'000, 100'000, 1);
  for (int i = 0; i < 1000; ++i) {
    std::string document(999, static_cast<char>('a' + i / 100));
    sample.add(document + "\n");
    again.add(document + "\n");
  }
  EXPECT_EQ(sample.lines(), again.lines());
  std::map<char, int> lines;
  for (const std::string& line : sample.lines()) ++lines[line[0]];
  EXPECT_EQ(lines.size(), 10u);
  EXPECT_LE(sample.lines().size(), 113u);
  EXPECT_GE(sample.lines().size(), 70u);
}

TEST(TrainingSample, CutsHugeLinesBetweenCharacters) {
  std::string line;
  for (int i = 0; i < 5000; ++i) line += "☃";
  TrainingSample sample(1, training_bytes, 1);
  sample.add(line);
  std::string joined;
  for (const std::string& piece : sample.lines()) {
    EXPECT_TRUE(is_utf8(piece));
    EXPECT_LE(piece.size(), 4096u);
    joined += piece;
  }
  EXPECT_EQ(joined, line);
}

TEST(SentencePieceTokenizer, GarbageIsRefused) {
  for (const std::string& model : {std::string(), std::string("garbage"), trained_model().substr(0, 1000)}) {
    Error error = error_of([&] { make_sentencepiece_tokenizer(model, "file", "some.model"); });
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("some.model"), std::string::npos);
  }
}

TEST(Utf8, KnowsWellFormedText) {
  for (const char* good : {"", "plain", "ß", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"})
    EXPECT_TRUE(is_utf8(good));
  for (const char* bad :
       {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "a\xf0\x9f\x9a"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

}  // namespace
}  // namespace ganymede::data
