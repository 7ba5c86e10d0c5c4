#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Names inside a part's database. The grammar is in README.md.
namespace ganymede::checkpoint {

constexpr const char* master_slot = "master";
constexpr const char* part_key = "~part";  // sorts behind every value's key

/// Elements of one value: 16 MiB of fp32.
constexpr std::int64_t value_elements = 4 << 20;

struct Key {
  std::string slot, parameter;
  std::int64_t first = 0;  // element within the parameter
  bool operator==(const Key&) const = default;
};

/// "slot/parameter/first, 16 digits", so that keys of one parameter sort by element.
std::string encode(const Key& key);
/// Nothing when the text is no key.
std::optional<Key> decode(std::string_view text);

/// Column family of a checkpoint: "step.<12 digits>".
std::string family_name(std::uint64_t step);
std::optional<std::uint64_t> family_step(std::string_view name);

/// Folder of a rank's part inside a checkpoint folder.
std::string part_folder(const std::string& checkpoints, int rank);

}  // namespace ganymede::checkpoint
