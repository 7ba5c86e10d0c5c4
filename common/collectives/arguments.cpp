#include "common/collectives/arguments.h"

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::collectives {

void check_offsets(std::span<const std::size_t> offsets, int size, std::size_t bytes, const char* operation) {
  GANYMEDE_CHECK(offsets.size() == static_cast<std::size_t>(size) + 1, "{}: {} offsets for {} members", operation,
                 offsets.size(), size);
  GANYMEDE_CHECK(std::is_sorted(offsets.begin(), offsets.end()) && offsets.back() <= bytes,
                 "{}: offsets that end at {} do not fit {} bytes", operation, offsets.back(), bytes);
}

void check_gather(ConstBytes mine, Bytes all, std::span<const std::size_t> offsets, int size, int place) {
  check_offsets(offsets, size, all.size(), "all_gather");
  std::size_t own = offsets[place + 1] - offsets[place];
  GANYMEDE_CHECK(own == mine.size(), "all_gather: {} bytes of its own, the offsets say {}", mine.size(), own);
}

void check_exchange(ConstBytes send, std::span<const std::size_t> send_offsets, Bytes receive,
                    std::span<const std::size_t> receive_offsets, int size, int place) {
  check_offsets(send_offsets, size, send.size(), "all_to_all");
  check_offsets(receive_offsets, size, receive.size(), "all_to_all");
  std::size_t kept = send_offsets[place + 1] - send_offsets[place];
  std::size_t own = receive_offsets[place + 1] - receive_offsets[place];
  GANYMEDE_CHECK(kept == own, "all_to_all: sends itself {} bytes and expects {}", kept, own);
}

void check_sum(std::size_t elements, std::span<const std::int64_t> cut, std::span<float> sum, int size, int place) {
  GANYMEDE_CHECK(cut.size() == static_cast<std::size_t>(size) + 1 && std::is_sorted(cut.begin(), cut.end()) &&
                     cut.front() >= 0 && static_cast<std::size_t>(cut.back()) <= elements,
                 "a sum: {} boundaries in a group of {} do not fit {} elements", cut.size(), size, elements);
  GANYMEDE_CHECK(sum.size() == static_cast<std::size_t>(cut[place + 1] - cut[place]),
                 "a sum: room for {} elements where {} are summed", sum.size(), cut[place + 1] - cut[place]);
}

}  // namespace ganymede::collectives
