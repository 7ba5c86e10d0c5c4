#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/random.h"

namespace ganymede::fuzz {

using Bytes = std::vector<std::byte>;

/// Bad input as a pure function of a seed, so a failure names what to repeat.
class Source {
 public:
  explicit Source(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t word() {
    auto bits = philox(seed_, 0, counter_++);
    return std::uint64_t{bits[0]} << 32 | bits[1];
  }
  std::uint64_t below(std::uint64_t limit) { return word() % limit; }

  Bytes noise(std::size_t size) {
    Bytes bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(word());
    return bytes;
  }

  /// The bytes with one to four places changed: a bit, a byte, a small or an extreme number, a cut, or a copied piece.
  Bytes mutated(Bytes bytes) {
    for (std::uint64_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) change(bytes);
    return bytes;
  }

 private:
  void change(Bytes& bytes) {
    std::size_t at = below(bytes.size());
    switch (below(6)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1u << below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(word());
        break;
      case 2:
        put(bytes, at, below(64));
        break;
      case 3:
        put(bytes, at, ~std::uint64_t{0} >> below(64));
        break;
      case 4:
        bytes.resize(at);
        break;
      case 5: {
        std::size_t from = below(bytes.size());
        for (std::size_t i = 0; i < 16 && at + i < bytes.size() && from + i < bytes.size(); ++i) {
          bytes[at + i] = bytes[from + i];
        }
        break;
      }
    }
  }

  void put(Bytes& bytes, std::size_t at, std::uint64_t number) {
    for (std::size_t i = 0, width = below(2) == 0 ? 4 : 8; i < width && at + i < bytes.size(); ++i) {
      bytes[at + i] = static_cast<std::byte>(number >> (8 * i));
    }
  }

  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

}  // namespace ganymede::fuzz
