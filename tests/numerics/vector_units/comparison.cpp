#include "tests/numerics/vector_units/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ganymede::vector_units {

std::string first_difference(const std::vector<Result>& found, const std::vector<Result>& expected) {
  if (found.size() != expected.size()) {
    return std::to_string(found.size()) + " results where " + std::to_string(expected.size()) + " are expected";
  }
  for (std::size_t i = 0; i < found.size(); i++) {
    if (found[i].name != expected[i].name)
      return "'" + found[i].name + "' where '" + expected[i].name + "' is expected";
    const auto& ours = found[i].bytes;
    const auto& theirs = expected[i].bytes;
    if (ours.size() != theirs.size()) return found[i].name + ": another length";
    auto differ = std::mismatch(ours.begin(), ours.end(), theirs.begin()).first;
    if (differ != ours.end()) return found[i].name + ": byte " + std::to_string(differ - ours.begin());
  }
  return "";
}

void expect_same(const std::vector<Result>& found, const std::vector<Result>& expected) {
  EXPECT_EQ(first_difference(found, expected), "");
}

}  // namespace ganymede::vector_units
