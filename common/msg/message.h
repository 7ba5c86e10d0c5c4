#pragma once

#include "schemas/messages_generated.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ganymede::msg {

constexpr std::size_t largest_message = 8u << 20;  // bytes; a longer one is refused before it is looked at

/// A verified Envelope in memory of its own, aligned. Cheap to move.
class Message {
 public:
  /// Checks size, copies to aligned memory, verifies with bounds on depth and tables. Throws Error with the reason.
  static Message parse(std::span<const std::byte> bytes);

  /// Builds one: `fill` adds the body's table and returns its type and offset.
  struct BodyOffset {
    fbs::Body type;
    flatbuffers::Offset<void> offset;
  };
  static Message build(std::uint64_t job, std::uint64_t id,
                       const std::function<BodyOffset(flatbuffers::FlatBufferBuilder&)>& fill);
  /// The same for a body of the object type T (`fbs::Register` …), from its builder function's result.
  template <class T>
  static BodyOffset body(flatbuffers::Offset<T> offset) {
    return {fbs::BodyTraits<T>::enum_value, offset.Union()};
  }

  const fbs::Envelope& envelope() const { return *fbs::GetEnvelope(data_.data()); }
  /// The body as T, or nullptr when it is of another type.
  template <class T>
  const T* as() const {
    return envelope().body_as<T>();
  }
  std::span<const std::byte> bytes() const { return {reinterpret_cast<const std::byte*>(data_.data()), size_}; }

 private:
  std::vector<std::uint64_t> data_;
  std::size_t size_ = 0;
};

/// Shorthands for the two commonest replies.
Message ack(const Message& request);
Message refused(const Message& request, int exit_code, const std::string& text);

}  // namespace ganymede::msg
