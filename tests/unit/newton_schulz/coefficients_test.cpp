#include "common/newton_schulz/coefficients.h"

#include <gmock/gmock.h>

#include "common/base/error.h"

namespace ganymede::newton_schulz {
namespace {

/// Smallest and largest output for singular values in [.01, 1], by the iteration as it is written down.
std::pair<double, double> range_of(const Schedule& schedule) {
  double least = 1e9, most = -1e9;
  for (int i = 0; i <= 200'000; ++i) {
    double s = .01 + .99 * i / 200'000;
    for (const auto& [a, b, c] : schedule) s = a * s + b * s * s * s + c * s * s * s * s * s;
    least = std::min(least, s);
    most = std::max(most, s);
  }
  return {least, most};
}

TEST(Coefficients, EachPublishedScheduleHasItsPublishedRange) {
  struct Published {
    const char* name;
    std::size_t steps;
    double least, most;
  };
  const Published published[] = {
      {"kj5", 5, .682, 1.134},   {"quintic5", 5, .978, 1.032}, {"polar_express5", 5, .870, 1.124},
      {"cans5", 5, .884, 1.120}, {"cubic5", 5, .774, 1.300},   {"ten_step", 10, 1.000, 1.001}};
  ASSERT_EQ(std::size(published), named_schedules().size());
  for (std::size_t i = 0; i < named_schedules().size(); ++i) {
    const auto& [name, steps] = named_schedules()[i];
    EXPECT_EQ(name, published[i].name);
    EXPECT_EQ(steps.size(), published[i].steps);
    const auto [least, most] = range_of(steps);
    EXPECT_NEAR(least, published[i].least, .0005001) << name;
    EXPECT_NEAR(most, published[i].most, .0005001) << name;
    const auto [coarse_least, coarse_most] = output_range(steps);
    EXPECT_NEAR(coarse_least, least, 1e-3) << name;
    EXPECT_NEAR(coarse_most, most, 1e-3) << name;
  }
}

TEST(Coefficients, ANameOrAListIsASchedule) {
  EXPECT_EQ(parse_schedule("key", " ten_step "), named_schedules().back().steps);
  const Schedule expected{{3.4445, -4.775, 2.0315}, {2, -1.5, .5}};
  EXPECT_EQ(parse_schedule("key", "3.4445,-4.775,2.0315; 2,-1.5,0.5"), expected);
  EXPECT_EQ(parse_schedule("key", "\t3.4445 , -4.775 ,2.0315;2, -1.5,5e-1\n"), expected);
}

TEST(Coefficients, AllButCans5WithstandBf16) {
  for (const auto& [name, steps] : named_schedules()) EXPECT_EQ(withstands_bf16(steps), name != "cans5") << name;
}

std::string refusal(std::string_view text) {
  try {
    parse_schedule("muon.coefficients", text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Coefficients, ARefusalNamesTheKeyTheValueAndTheWayOut) {
  EXPECT_EQ(refusal("quintic"),
            "muon.coefficients: no schedule is called \"quintic\" (\"quintic5\"?); there are kj5, quintic5, "
            "polar_express5, cans5, cubic5, ten_step, or a list of triples as in \"3.4445,-4.775,2.0315; …\"");
  EXPECT_THAT(refusal(""), testing::HasSubstr("no schedule is called \"\"; there are"));
  EXPECT_EQ(refusal("2,-1.5,0.5; 3,4"),
            "muon.coefficients: triple 2, \"3,4\", has 2 numbers; a step is three numbers, as in "
            "\"3.4445,-4.775,2.0315\"");
  EXPECT_THAT(refusal("2,-1.5,0.5;"), testing::HasSubstr("triple 2, \"\", has 1 number"));
  EXPECT_THAT(refusal("2,-1.5,x"), testing::HasSubstr("\"x\" in triple 1 is not a number"));
  for (const auto* text : {"2,,0.5", "2,-1.5,0.5x", "2,-1.5,nan", "2,inf,0", "2,1e999,0", "2,0x1p3,1"}) {
    EXPECT_THAT(refusal(text), testing::HasSubstr("is not a number; a step is three of them")) << text;
  }
}

TEST(Coefficients, AListThatLeadsAstrayOrIsTooLongIsRefused) {
  EXPECT_EQ(refusal("-1,0,0"),
            "muon.coefficients: these 1 steps take singular values from 0.01 to 1 to -1 … -0.01; they should come near "
            "1: more than 0, at most 10");
  EXPECT_THAT(refusal("3.4445,4.775,2.0315; 3.4445,4.775,2.0315"), testing::HasSubstr("at most 10"));
  EXPECT_THAT(refusal("1e200,1e200,1e200; 1e200,-1e200,1e200"), testing::HasSubstr("at most 10"));
  std::string list = "1,0,0";
  for (int i = 1; i < most_steps; ++i) list += ";1,0,0";
  EXPECT_EQ(parse_schedule("key", list).size(), static_cast<std::size_t>(most_steps));
  EXPECT_EQ(refusal(list + ";1,0,0"), "muon.coefficients: 100 triples, one a step; at most 99 are allowed");
}

}  // namespace
}  // namespace ganymede::newton_schulz
