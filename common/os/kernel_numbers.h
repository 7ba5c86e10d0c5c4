#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

/// How the kernel tells numbers in /proc and /sys. A file or a number that is not there, or is no number, is nothing.
namespace ganymede::os {

/// The number behind `name` in a file of lines "name number" ("MemFree:  123 kB", "Node 0 MemFree:  123 kB").
std::optional<std::uint64_t> kernel_entry(const std::filesystem::path& path, std::string_view name);

/// The number that is the whole file; nothing for "max".
std::optional<std::uint64_t> kernel_number(const std::filesystem::path& path);

/// "0-3,8" as numbers; what is no number or range is left out.
std::vector<int> kernel_list(const std::filesystem::path& path);

}  // namespace ganymede::os
