#include "services/checkpoint/value.h"

#include <fmt/format.h>

#include <cstring>

namespace ganymede::checkpoint {
namespace {

constexpr std::uint32_t value_magic = 0x31565647;  // "GVV1"

ValueHeader header_of(std::string_view bytes) {
  ValueHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

std::size_t element_bytes(ValueType type) { return type == ValueType::f32 ? sizeof(float) : 1; }

}  // namespace

std::span<float> ValueBuffer::data() {
  return {reinterpret_cast<float*>(bytes_.data() + sizeof(ValueHeader)),
          (bytes_.size() - sizeof(ValueHeader)) / sizeof(float)};
}

void ValueBuffer::seal() {
  auto content = std::span<const std::byte>(bytes_).subspan(sizeof(ValueHeader));
  ValueHeader header{value_magic, static_cast<std::uint32_t>(ValueType::f32), content.size() / sizeof(float),
                     hash128(content)};
  std::memcpy(bytes_.data(), &header, sizeof header);
}

Hash128 ValueBuffer::hash() const { return header_of(bytes()).hash; }

std::string text_value(std::string_view text) {
  ValueHeader header{value_magic, static_cast<std::uint32_t>(ValueType::text), text.size(), hash128(text)};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes.append(text);
}

std::string why_damaged(std::string_view bytes, ValueType type, std::int64_t count) {
  if (bytes.size() < sizeof(ValueHeader)) return fmt::format("it has {} bytes and no header", bytes.size());
  ValueHeader header = header_of(bytes);
  if (header.magic != value_magic) return "its header is not one of this format";
  if (header.type != static_cast<std::uint32_t>(type)) return fmt::format("its type is {}", header.type);
  std::size_t content = bytes.size() - sizeof header;
  if (content % element_bytes(type) != 0 || header.count != content / element_bytes(type)) {
    return fmt::format("it has {} bytes for {} elements", content, header.count);
  }
  if (count >= 0 && header.count != static_cast<std::uint64_t>(count)) {
    return fmt::format("it has {} elements and {} are expected", header.count, count);
  }
  if (hash128(data_of(bytes)) != header.hash) return "its data do not have the hash that was stored with them";
  return {};
}

std::span<const std::byte> data_of(std::string_view bytes) {
  return std::as_bytes(std::span(bytes)).subspan(sizeof(ValueHeader));
}

Hash128 hash_of(std::string_view bytes) { return header_of(bytes).hash; }

}  // namespace ganymede::checkpoint
