#include "common/base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace ganymede {
namespace {

TEST(Hash, GivesThePublishedValues) {
  // XXH3 of the empty input, seed 0.
  EXPECT_EQ(hash64(std::string_view("")), 0x2d06800538d394c2u);
  EXPECT_EQ(hash128(std::string_view("")).hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, SeedAndEveryByteMatter) {
  std::string text(1000, 'a');
  auto whole = hash64(text);
  EXPECT_NE(hash64(text, 1), whole);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    ASSERT_NE(hash64(other), whole) << "byte " << i;
  }
}

TEST(StreamingHash, DoesNotSeeWhereTheBytesWereCut) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 37 % 251);
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  for (std::size_t piece : {1u, 7u, 64u, 1000u, 5000u}) {
    StreamingHash hash;
    for (std::size_t at = 0; at < bytes.size(); at += piece) hash.add(bytes.subspan(at, std::min(piece, 5000 - at)));
    EXPECT_EQ(hash.value(), hash128(text));
  }
  EXPECT_EQ(StreamingHash().value(), hash128(std::string_view("")));
}

}  // namespace
}  // namespace ganymede
