#include "common/shm/segment.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "common/shm/segment_header.h"
#include "tests/unit/shm/memory.h"

namespace ganymede::shm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Layout sample() {
  return lay_out("sample", {{"words", ElementType::u64, {3}, 0},
                            {"values", ElementType::f32, {100, 1000}, 0},
                            {"none", ElementType::u8, {0}, 0},
                            {"tokens", ElementType::i32, {2, 5}, 0}});
}

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Layout, EntriesAreAlignedInOrderAndDoNotOverlap) {
  Layout layout = sample();
  std::uint64_t end = 64;
  for (const Entry& entry : layout.entries) {
    EXPECT_EQ(entry.offset % 64, 0) << entry.name;
    EXPECT_GE(entry.offset, end) << entry.name;
    end = entry.offset + entry.bytes();
  }
  EXPECT_EQ(layout.entry("values").offset % (64 << 10), 0);
  EXPECT_GE(layout.size, end);
  EXPECT_EQ(layout.size, 2u << 20);
}

TEST(Layout, SizeIsRoundedToTwoMebibytesAndNotToAPowerOfTwo) {
  Layout layout = lay_out("big", {{"values", ElementType::u8, {(5 << 20) + 1}, 0}});
  EXPECT_EQ(layout.size, 6u << 20);
}

TEST(Layout, HashChangesWithEveryPartOfAnEntry) {
  Layout layout = sample();
  std::uint64_t hash = layout.hash();
  EXPECT_EQ(sample().hash(), hash);
  auto changed = [&](auto change) {
    Layout copy = layout;
    change(copy);
    return copy.hash() != hash;
  };
  EXPECT_TRUE(changed([](Layout& l) { l.name = "other"; }));
  EXPECT_TRUE(changed([](Layout& l) { l.entries[1].name = "value"; }));
  EXPECT_TRUE(changed([](Layout& l) { l.entries[1].type = ElementType::i32; }));
  EXPECT_TRUE(changed([](Layout& l) { std::swap(l.entries[1].shape[0], l.entries[1].shape[1]); }));
  EXPECT_TRUE(changed([](Layout& l) { l.entries[3].offset += 64; }));
  EXPECT_TRUE(changed([](Layout& l) { l.entries.pop_back(); }));
}

TEST(Layout, TwoEntriesOfOneNameAndImpossibleShapesAreRefused) {
  EXPECT_THAT(error_of([] {
                lay_out("x", {{"a", ElementType::u8, {1}, 0}, {"a", ElementType::u8, {1}, 0}});
              }),
              AllOf(HasSubstr("\"x\""), HasSubstr("two entries \"a\"")));
  EXPECT_THAT(error_of([] { lay_out("x", {{"a", ElementType::u8, {-1}, 0}}); }), HasSubstr("negative"));
  EXPECT_THAT(error_of([] {
                lay_out("x", {{"a", ElementType::u64, {1ll << 31, 1ll << 31, 2}, 0}});
              }),
              HasSubstr("beyond"));
}

TEST(Segment, WhatOneProcessWritesAnotherMappingReads) {
  Layout layout = sample();
  os::Fd fd = memory(layout.size);
  Segment written = Segment::create(fd.get(), layout, 77);
  for (float value : written.span<float>("values")) ASSERT_EQ(value, 0.0f);
  written.span<float>("values")[99'999] = 2.5f;
  written.span<std::uint64_t>("words")[2] = 9;
  Segment read = Segment::attach(fd.get(), layout, 77);
  EXPECT_EQ(read.span<float>("values").size(), 100'000u);
  EXPECT_EQ(read.span<float>("values")[99'999], 2.5f);
  EXPECT_EQ(read.span<std::uint64_t>("words")[2], 9u);
  EXPECT_TRUE(read.span<std::byte>("none").empty());
}

TEST(Segment, OutlivesTheDescriptorAndCanBeMoved) {
  Layout layout = sample();
  os::Fd fd = memory(layout.size);
  Segment first = Segment::create(fd.get(), layout, 1);
  fd = os::Fd();
  Segment second = std::move(first);
  second.span<std::int32_t>("tokens")[9] = -4;
  Segment third = Segment::create(memory(layout.size).get(), layout, 1);
  third = std::move(second);
  EXPECT_EQ(third.span<std::int32_t>("tokens")[9], -4);
}

TEST(Segment, DescribesItselfToAProcessThatKnowsNothing) {
  Layout layout = sample();
  os::Fd fd = memory(layout.size);
  Segment::create(fd.get(), layout, 5);
  Layout found = Segment::describe(fd.get());
  EXPECT_EQ(found.hash(), layout.hash());
  EXPECT_EQ(found.name, "sample");
  EXPECT_EQ(found.entry("values").shape, (std::vector<std::int64_t>{100, 1000}));
}

TEST(Segment, AWrongLayoutIsRefusedWithTheEntryThatDiffers) {
  Layout layout = sample();
  os::Fd fd = memory(layout.size);
  Segment::create(fd.get(), layout, 5);
  auto attach = [&](std::vector<Entry> entries) {
    return error_of([&] { Segment::attach(fd.get(), lay_out("sample", std::move(entries)), 5); });
  };
  std::vector<Entry> entries = layout.entries;
  entries[1].shape = {100, 999};
  EXPECT_THAT(attach(entries), AllOf(HasSubstr("\"values\""), HasSubstr("[100, 1000]"), HasSubstr("[100, 999]")));
  entries = layout.entries;
  entries[3].type = ElementType::f32;
  EXPECT_THAT(attach(entries), AllOf(HasSubstr("\"tokens\" is i32"), HasSubstr("f32 [2, 5]")));
  entries = layout.entries;
  entries[0].name = "steps";
  EXPECT_THAT(attach(entries), AllOf(HasSubstr("\"words\""), HasSubstr("\"steps\"")));
  entries = layout.entries;
  entries.push_back({"more", ElementType::u8, {1}, 0});
  EXPECT_THAT(attach(entries), HasSubstr("\"more\" is missing"));
  entries = layout.entries;
  entries.pop_back();
  EXPECT_THAT(attach(entries), HasSubstr("one entry too many, \"tokens\""));
}

TEST(Segment, AnotherJobOrAnotherSegmentIsRefused) {
  Layout layout = sample();
  os::Fd fd = memory(layout.size);
  Segment::create(fd.get(), layout, 0x55);
  EXPECT_THAT(error_of([&] { Segment::attach(fd.get(), layout, 0x56); }), HasSubstr("job 0000000000000055"));
  Layout other = lay_out("other", layout.entries);
  EXPECT_THAT(error_of([&] { Segment::attach(fd.get(), other, 0x55); }), HasSubstr("\"other\" is expected"));
}

TEST(Segment, MemoryOfTheWrongSizeIsNotTaken) {
  Layout layout = sample();
  EXPECT_THAT(error_of([&] { Segment::create(memory(layout.size - 4096).get(), layout, 1); }),
              HasSubstr("needs memory of"));
}

TEST(Segment, WhatIsNoSegmentIsOneError) {
  EXPECT_THAT(error_of([] { Segment::describe(memory(0).get()); }), HasSubstr("only 0 bytes"));
  EXPECT_THAT(error_of([] { Segment::describe(memory(63).get()); }), HasSubstr("only 63 bytes"));
  EXPECT_THAT(error_of([] { Segment::describe(memory(2 << 20).get()); }), HasSubstr("first word"));
  EXPECT_THAT(error_of([] { Segment::describe(-1); }), HasSubstr("cannot be looked at"));
}

TEST(Segment, ATruncatedOneIsOneErrorAtEveryLength) {
  Layout layout = sample();
  os::Fd fd = memory(layout.size);
  Segment::create(fd.get(), layout, 5);
  for (std::uint64_t size :
       {layout.size - 1, layout.size / 2, std::uint64_t{700}, std::uint64_t{64}, std::uint64_t{8}}) {
    ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    EXPECT_THROW(Segment::describe(fd.get()), Error) << size;
  }
}

TEST(Segment, EveryBitOfTheHeadThatChangesIsNoticedAndTheSegmentNamed) {
  Layout layout = sample();
  os::Fd fd = memory(layout.size);
  Segment::create(fd.get(), layout, 5);
  std::uint64_t head = sizeof(SegmentPrefix) + table_bytes(layout).size();
  for (std::uint64_t offset = 0; offset < head; ++offset) {
    std::uint8_t kept = 0;
    ASSERT_EQ(::pread(fd.get(), &kept, 1, static_cast<off_t>(offset)), 1);
    for (int bit = 0; bit < 8; ++bit) {
      auto flipped = static_cast<std::uint8_t>(kept ^ 1u << bit);
      ASSERT_EQ(::pwrite(fd.get(), &flipped, 1, static_cast<off_t>(offset)), 1);
      EXPECT_THAT(error_of([&] { Segment::attach(fd.get(), layout, 5); }),
                  AllOf(HasSubstr("Segment \"sample\" is damaged"), HasSubstr("from its last checkpoint")))
          << "byte " << offset << ", bit " << bit;
    }
    ASSERT_EQ(::pwrite(fd.get(), &kept, 1, static_cast<off_t>(offset)), 1);
  }
  EXPECT_NO_THROW(Segment::attach(fd.get(), layout, 5));
}

}  // namespace
}  // namespace ganymede::shm
