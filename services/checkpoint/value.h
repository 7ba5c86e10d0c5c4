#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/hash.h"

/// The bytes of one value: a 32-byte header, then the data.
namespace ganymede::checkpoint {

enum class ValueType : std::uint32_t { f32 = 1, text = 2 };

struct ValueHeader {
  std::uint32_t magic = 0;
  std::uint32_t type = 0;
  std::uint64_t count = 0;  // elements (f32) or bytes (text)
  Hash128 hash;             // XXH3 of the data
};
static_assert(sizeof(ValueHeader) == 32);

/// A value being put together: the caller fills `data`, then `seal` writes the header in front of it.
class ValueBuffer {
 public:
  explicit ValueBuffer(std::size_t elements) : bytes_(sizeof(ValueHeader) + elements * sizeof(float)) {}
  std::span<float> data();
  void seal();
  Hash128 hash() const;
  std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::vector<std::byte> bytes_;
};

/// A value that holds text.
std::string text_value(std::string_view text);

/// Why the bytes are not an intact value of that type and count; empty when they are. `count` -1: any.
std::string why_damaged(std::string_view bytes, ValueType type, std::int64_t count);

/// The data behind the header; call only on bytes that are not damaged.
std::span<const std::byte> data_of(std::string_view bytes);
Hash128 hash_of(std::string_view bytes);

}  // namespace ganymede::checkpoint
