#include "services/data/blocks.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/hash.h"

namespace ganymede::data {

void BlockHasher::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (partial_.empty() && bytes.size() >= block_bytes) {
      hashes_.push_back(hash64(bytes.first(block_bytes)));
      bytes = bytes.subspan(block_bytes);
      continue;
    }
    std::size_t taken = std::min(bytes.size(), block_bytes - partial_.size());
    partial_.insert(partial_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    if (partial_.size() < block_bytes) return;
    hashes_.push_back(hash64(partial_));
    partial_.clear();
  }
}

std::vector<std::uint64_t> BlockHasher::finish() {
  if (!partial_.empty()) hashes_.push_back(hash64(partial_));
  partial_.clear();
  return std::move(hashes_);
}

BlockCheck::BlockCheck(std::span<const std::byte> content, std::span<const std::uint64_t> hashes)
    : content_(content), hashes_(hashes), known_((hashes.size() + 63) / 64) {
  GANYMEDE_CHECK(hashes.size() == blocks_of(content.size()), "{} hashes of {} bytes", hashes.size(), content.size());
}

bool BlockCheck::sound(std::span<const std::byte> part) const {
  if (part.empty()) return true;
  auto offset = static_cast<std::uint64_t>(part.data() - content_.data());
  GANYMEDE_CHECK(part.data() >= content_.data() && offset + part.size() <= content_.size(), "outside the content");
  std::uint64_t last = (offset + part.size() - 1) / block_bytes;
  for (std::uint64_t block = offset / block_bytes; block <= last; ++block)
    if (!block_sound(block)) return false;
  return true;
}

void BlockCheck::forget() const {
  for (std::atomic<std::uint64_t>& word : known_) word.store(0, std::memory_order_relaxed);
}

bool BlockCheck::block_sound(std::uint64_t block) const {
  std::atomic<std::uint64_t>& word = known_[block / 64];
  std::uint64_t bit = std::uint64_t{1} << (block % 64);
  if ((word.load(std::memory_order_relaxed) & bit) != 0) return true;
  std::uint64_t begin = block * block_bytes;
  if (hash64(content_.subspan(begin, std::min<std::uint64_t>(block_bytes, content_.size() - begin))) != hashes_[block])
    return false;
  word.fetch_or(bit, std::memory_order_relaxed);
  return true;
}

}  // namespace ganymede::data
