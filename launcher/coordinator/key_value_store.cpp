#include "launcher/coordinator/key_value_store.h"

#include <charconv>

#include "common/base/error.h"

namespace ganymede::coordinator {

void KeyValueStore::begin(std::uint64_t generation) {
  generation_ = generation;
  bytes_ = 0;
  values_.clear();
  last_add_.clear();
}

void KeyValueStore::check(std::uint64_t generation, const std::string& key) const {
  if (generation != generation_)
    fail("Generation {} is over: the world is in generation {} now.", generation, generation_);
  if (key.empty() || key.size() > limits_.key_bytes)
    fail("A rendezvous key has {} bytes; 1 to {} are allowed.", key.size(), limits_.key_bytes);
}

void KeyValueStore::put(const std::string& key, Value value) {
  if (value.size() > limits_.value_bytes)
    fail("The value of rendezvous key '{}' has {} bytes; at most {} are allowed.", key, value.size(),
         limits_.value_bytes);
  auto there = values_.find(key);
  std::size_t before = there == values_.end() ? 0 : key.size() + there->second.size();
  std::size_t total = bytes_ - before + key.size() + value.size();
  if (total > limits_.total_bytes || (there == values_.end() && values_.size() >= limits_.entries))
    fail("The rendezvous of generation {} is full ({} keys, {} bytes).", generation_, values_.size(), bytes_);
  bytes_ = total;
  values_[key] = std::move(value);
}

void KeyValueStore::set(std::uint64_t generation, const std::string& key, Value value) {
  check(generation, key);
  put(key, std::move(value));
}

std::optional<KeyValueStore::Value> KeyValueStore::get(std::uint64_t generation, const std::string& key) const {
  check(generation, key);
  auto there = values_.find(key);
  if (there == values_.end()) return std::nullopt;
  return there->second;
}

std::int64_t KeyValueStore::add(std::uint64_t generation, const std::string& key, std::int64_t amount,
                                const std::string& peer, std::uint64_t request) {
  check(generation, key);
  auto last = last_add_.find(peer);
  if (last != last_add_.end() && last->second.first == request) return last->second.second;
  std::int64_t number = 0;
  if (auto there = values_.find(key); there != values_.end()) {
    const char* first = reinterpret_cast<const char*>(there->second.data());
    const char* end = first + there->second.size();
    if (std::from_chars(first, end, number).ptr != end)
      fail("Rendezvous key '{}' does not hold a number, so nothing can be added to it.", key);
  }
  if (__builtin_add_overflow(number, amount, &number)) fail("The number of rendezvous key '{}' is too large.", key);
  std::string text = std::to_string(number);
  put(key, Value(text.begin(), text.end()));
  if (last_add_.size() >= limits_.entries) last_add_.erase(last_add_.begin());
  last_add_[peer] = {request, number};
  return number;
}

}  // namespace ganymede::coordinator
