#include <sstream>

#include "services/data/commands.h"
#include "tests/unit/data/workspace.h"

namespace ganymede::data {
namespace {

class TextCommands : public Workspace {
 protected:
  TextCommands() {
    write_documents(10);
    pack(options());
  }
  std::string decoded(const std::string& ids, std::uint64_t dim) {
    std::istringstream in(ids);
    testing::internal::CaptureStdout();
    decode_command(path("set"), in, dim);
    return testing::internal::GetCapturedStdout();
  }
};

TEST_F(TextCommands, DecodingIsPlainTextUnlessTheBeginningShallBeDim) {
  EXPECT_EQ(decoded("100 101 102 32 120", 0), "def x");
  EXPECT_EQ(decoded("100 101 102 32 120", 4), "\x1b[2mdef \x1b[0mx");
}

TEST_F(TextCommands, LettersAreNotLeftDimWhenTokensEndEarly) {
  EXPECT_EQ(decoded("100 101", 4), "\x1b[2mde\x1b[0m");
  EXPECT_EQ(decoded("", 4), "");
}

}  // namespace
}  // namespace ganymede::data
