#include "common/service/protocol.h"

#include <gmock/gmock.h>

#include "common/base/error.h"
#include "tests/unit/service/fake_node.h"

namespace ganymede::service {
namespace {

using testing::MatchesRegex;

TEST(Protocol, IsThatOfProgramAndRun) {
  FakeNode node;
  std::string first = protocol();
  EXPECT_THAT(first, MatchesRegex("[0-9a-f]+/[0-9a-f]+"));
  EXPECT_EQ(protocol(), first);
  config::Config other = config::load(config_file, {});
  other.data.seq_len *= 2;
  os::write_file_atomically(config_file, config::effective(other));
  EXPECT_NE(protocol(), first) << "segments of another size";
  EXPECT_EQ(protocol().substr(0, first.find('/')), first.substr(0, first.find('/')));
}

TEST(Protocol, IsToldByAServiceProgramInOneLine) {
  FakeNode node;
  testing::internal::CaptureStdout();
  const char* arguments[] = {"ganymede-data", "--protocol", "."};
  auto never = [](Context&) { FAIL() << "the service began"; };
  EXPECT_EQ(run(Kind::data, 3, const_cast<char**>(arguments), never), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "ganymede-data " + protocol() + "\n");
}

TEST(Protocol, OfAFolderThatIsNoRunIsAnError) {
  FakeNode node;
  testing::internal::CaptureStderr();
  EXPECT_EQ(tell_protocol(Kind::data, "logs"), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("ganymede-data: "));
}

}  // namespace
}  // namespace ganymede::service
