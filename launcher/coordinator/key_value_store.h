#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::coordinator {

/// The key-value rendezvous of the current generation. Every call for another generation throws Error, so whoever
/// waits for a key of an old one learns that it is over. Bounded: a call that would pass a limit throws Error and
/// changes nothing. Not thread-safe.
class KeyValueStore {
 public:
  using Value = std::vector<std::uint8_t>;

  struct Limits {
    std::size_t key_bytes = 512;
    std::size_t value_bytes = 1u << 20;
    std::size_t entries = 1u << 16;
    std::size_t total_bytes = 64u << 20;  // of all keys and values
  };

  KeyValueStore() = default;
  explicit KeyValueStore(Limits limits) : limits_(limits) {}

  /// From now on `generation` is the one that is served; what earlier ones stored is dropped.
  void begin(std::uint64_t generation);

  void set(std::uint64_t generation, const std::string& key, Value value);
  /// Nothing when the key is not there (yet).
  std::optional<Value> get(std::uint64_t generation, const std::string& key) const;

  /// Adds to a number (0 when it is not there; kept as decimal text, as other stores of collectives do) and returns
  /// the sum. `peer` and `request` name the call: the same call again returns the first result and adds nothing.
  std::int64_t add(std::uint64_t generation, const std::string& key, std::int64_t amount, const std::string& peer,
                   std::uint64_t request);

 private:
  void check(std::uint64_t generation, const std::string& key) const;
  void put(const std::string& key, Value value);

  Limits limits_;
  std::uint64_t generation_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::string, Value> values_;
  std::map<std::string, std::pair<std::uint64_t, std::int64_t>> last_add_;  // peer → (request, result)
};

}  // namespace ganymede::coordinator
