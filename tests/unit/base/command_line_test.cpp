#include "common/base/command_line.h"

#include <gtest/gtest.h>

#include <limits>

namespace ganymede::command_line {
namespace {

/// What a person reads after these arguments; "" when they are accepted.
std::string fault_of(std::vector<std::string> arguments) {
  CLI::App app("", "program");
  app.require_subcommand(1);
  std::int64_t steps = 0;
  double share = 0;
  CLI::App* train = app.add_subcommand("train");
  train->add_option("--steps", steps)->check(between<std::int64_t>(1, 100));
  train->add_option("--share", share)->check(between(0.0, 0.5));
  CLI::App* control = app.add_subcommand("control");
  control->require_subcommand(1);
  control->add_subcommand("status");
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return fault(app, error);
  }
  return "";
}

TEST(CommandLine, NumberOutsideItsRangeIsRefusedWithLimitsAsOneWritesThem) {
  EXPECT_EQ(fault_of({"train", "--steps", "0"}), "--steps: 0 is not a whole number from 1 to 100");
  EXPECT_EQ(fault_of({"train", "--steps", "1.5"}), "--steps: 1.5 is not a whole number from 1 to 100");
  EXPECT_EQ(fault_of({"train", "--steps", "99999999999999999999"}),
            "--steps: 99999999999999999999 is not a whole number from 1 to 100");
  EXPECT_EQ(fault_of({"train", "--share", "0.6"}), "--share: 0.6 is not a number from 0 to 0.5");
  EXPECT_EQ(fault_of({"train", "--steps", "100", "--share", "0.5"}), "");
}

TEST(CommandLine, NotANumberIsInNoRange) {
  EXPECT_EQ(fault_of({"train", "--share", "nan"}), "--share: nan is not a number from 0 to 0.5");
}

TEST(CommandLine, UnknownCommandIsNamedWithTheNearestKnownOne) {
  EXPECT_EQ(fault_of({"trian"}), "'trian' is not known; did you mean 'train'?");
  EXPECT_EQ(fault_of({"control", "state"}), "'state' is not known; did you mean 'status'?");
  EXPECT_EQ(fault_of({"xyzzy"}), "'xyzzy' is not known; the commands are train, control");
}

TEST(CommandLine, UnknownOptionIsNamedWithTheNearestKnownOne) {
  EXPECT_EQ(fault_of({"train", "--stepz", "3"}), "'--stepz' is not known; did you mean '--steps'?");
}

TEST(CommandLine, MissingCommandIsAnsweredWithThoseThereAre) {
  EXPECT_EQ(fault_of({}), "a command is missing: train, control");
}

TEST(CommandLine, OtherFaultsKeepTheirText) {
  EXPECT_EQ(fault_of({"train", "--xyzzy", "3"}), "The following arguments were not expected: 3 --xyzzy");
}

}  // namespace
}  // namespace ganymede::command_line
