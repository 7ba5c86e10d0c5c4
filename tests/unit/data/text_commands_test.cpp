#include <sstream>

#include "services/data/commands.h"
#include "services/data/dataset.h"
#include "services/data/terminal_text.h"
#include "tests/unit/data/workspace.h"

namespace ganymede::data {
namespace {

class TextCommands : public Workspace {
 protected:
  TextCommands() {
    write_documents(10);
    pack(options());
  }
  std::string decoded(const std::string& ids, std::uint64_t dim, bool terminal = true) {
    std::istringstream in(ids);
    testing::internal::CaptureStdout();
    decode_command(path("set"), in, {dim, terminal});
    return testing::internal::GetCapturedStdout();
  }
};

TEST_F(TextCommands, DecodingIsPlainTextUnlessTheBeginningShallBeDim) {
  EXPECT_EQ(decoded("100 101 102 32 120", 0), "def x");
  EXPECT_EQ(decoded("100 101 102 32 120", 4, false), "def x");
  EXPECT_EQ(decoded("100 101 102 32 120", 4), "\x1b[2mdef \x1b[0mx");
}

TEST_F(TextCommands, LettersAreNotLeftDimWhenTokensEndEarly) {
  EXPECT_EQ(decoded("100 101", 4), "\x1b[2mde\x1b[0m");
  EXPECT_EQ(decoded("", 4), "");
}

TEST_F(TextCommands, TextCannotSteerATerminal) {
  std::string controls =
      "27 91 50 74 9 10 8 127 155 194 155 195 169 195";  // ESC [2J, tab, line end, BS, DEL, CSI twice, é, half of one
  const std::string none = "\xef\xbf\xbd";
  EXPECT_EQ(decoded(controls, 0), none + "[2J\t\n" + none + none + none + none + "\u00e9" + none);
  EXPECT_EQ(decoded(controls, 0, false), "\x1b[2J\t\n\b\x7f\x9b\xc2\x9b\xc3\xa9\xc3") << "a pipe gets the text itself";
}

TEST_F(TextCommands, LineEndIsAddedWhereATextHasNone) {
  auto shown = [&](const std::string& ids, std::uint64_t dim = 0) {
    std::istringstream in(ids);
    testing::internal::CaptureStdout();
    decode_command(path("set"), in, {dim, true, true});
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(shown("100 101"), "de\n");
  EXPECT_EQ(shown("100 10"), "d\n");
  EXPECT_EQ(shown("100 10", 2), "\x1b[2md\n\x1b[0m") << "codes are no text";
  EXPECT_EQ(shown(""), "");
}

TEST_F(TextCommands, ErrorAfterTextBeginsALine) {
  for (const auto& [ids, text] :
       {std::pair{"100 101 wrong", "\x1b[2mde\x1b[0m\n"}, {"100 10 999", "\x1b[2md\n\x1b[0m"}}) {
    std::istringstream in(ids);
    testing::internal::CaptureStdout();
    EXPECT_THROW(decode_command(path("set"), in, {3, true}), Error);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), text);
  }
}

TEST_F(TextCommands, CheckSaysWhatItFound) {
  auto said = [&](const std::string& data) {
    testing::internal::CaptureStdout();
    check_command(write("recipe.toml", "[data]\nseq_len = 32\n" + data), {});
    return testing::internal::GetCapturedStdout();
  };
  std::string set = path("set"), missing = path("missing");
  Meta meta = Dataset(set).meta();
  EXPECT_EQ(said(fmt::format("path = \"{}\"\n", set)),
            fmt::format("{} fits the recipe: {} training and {} validation rows of 32 tokens\n", set, meta.train_rows,
                        meta.validation_rows));
  EXPECT_EQ(said(fmt::format("path = \"{}\"\nsources = [\"texts\"]\n", missing)),
            missing + " is not packed yet: `ganymede train` packs it from texts on first use\n");
  EXPECT_THROW(said(fmt::format("path = \"{}\"\n", missing)), Error) << "nothing to make it from";
  testing::internal::GetCapturedStdout();
}

TEST_F(TextCommands, InspectSaysThatItVerified) {
  auto said = [&](bool json, bool verify) {
    testing::internal::CaptureStdout();
    inspect_command({.dataset = path("set"), .row = {}, .json = json, .verify = verify});
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(said(false, true).rfind("verified: ", 0), 0u);
  EXPECT_EQ(said(false, false).find("verified"), std::string::npos);
  EXPECT_EQ(said(true, true), said(true, false)) << "JSON is for programs";
}

TEST(TerminalText, CharactersMayComeInPieces) {
  TerminalText text;
  EXPECT_EQ(text.take("a\xf0\x9f"), "a");
  EXPECT_EQ(text.take("\x98\x80"
                      "b"),
            "\xf0\x9f\x98\x80"
            "b");
  EXPECT_EQ(text.take("\xe2\x82"), "");
  EXPECT_EQ(text.take("c\xe0\x80\x9b\xff"),
            "\xef\xbf\xbd"
            "c\xef\xbf\xbd\xef\xbf\xbd")
      << "no overlong form, no byte of no character";
  EXPECT_EQ(text.end(), "");
}

}  // namespace
}  // namespace ganymede::data
