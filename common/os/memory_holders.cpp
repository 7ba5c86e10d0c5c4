#include "common/os/memory_holders.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/os/kernel_numbers.h"

namespace ganymede::os {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t stat_block = 512;   // bytes of st_blocks
constexpr std::size_t most_names = 20'000;  // that are looked at in all file systems together

using Holders = std::vector<MemoryHolder>;

/// 0: the folder is no process.
int process_id(const std::string& folder) {
  int pid = 0;
  const char* end = folder.data() + folder.size();
  auto parsed = std::from_chars(folder.data(), end, pid);
  return parsed.ec == std::errc{} && parsed.ptr == end ? pid : 0;
}

std::string name_of(const fs::path& process) {
  std::ifstream file(process / "comm");
  std::string name;
  std::getline(file, name);
  return printable(name);
}

void add_processes(Holders& holders, const fs::path& proc) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(proc, none)) {
    int pid = process_id(entry.path().filename().string());
    if (pid == 0) continue;
    fs::path status = entry.path() / "status";
    std::uint64_t own = kernel_entry(status, "RssAnon:").value_or(0) * kib;
    std::uint64_t shared = kernel_entry(status, "RssShmem:").value_or(0) * kib;
    if (own + shared > 0) holders.push_back({pid, name_of(entry.path()), own + shared, shared});
  }
}

/// Without the escapes of /proc/mounts (\040 is a space).
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 3, code, 8).ptr == &text[i + 1] + 3) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Where a tmpfs is mounted, each once.
std::set<std::string> memory_file_systems(const fs::path& mounts) {
  std::set<std::string> folders;
  std::ifstream file(mounts);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string device, folder, type;
    if (words >> device >> folder >> type && type == "tmpfs") folders.insert(unescaped(folder));
  }
  return folders;
}

void add_files(Holders& holders, const fs::path& root, const std::set<std::string>& folders) {
  std::size_t names = 0;
  std::set<std::pair<dev_t, ino_t>> seen;  // one file system may be mounted twice
  for (const std::string& folder : folders) {
    std::error_code none;
    fs::path top = root / fs::path(folder).relative_path();
    struct stat of_top {};
    if (::stat(top.c_str(), &of_top) != 0) continue;
    fs::recursive_directory_iterator entry(top, fs::directory_options::skip_permission_denied, none), end;
    for (; !none && entry != end && names < most_names; entry.increment(none), ++names) {
      struct stat file {};
      if (::lstat(entry->path().c_str(), &file) != 0) continue;
      if (file.st_dev != of_top.st_dev) {  // another file system
        entry.disable_recursion_pending();
        continue;
      }
      if (!S_ISREG(file.st_mode) || !seen.emplace(file.st_dev, file.st_ino).second) continue;
      std::string path = "/" + entry->path().lexically_relative(root).string();
      std::uint64_t bytes = static_cast<std::uint64_t>(file.st_blocks) * stat_block;
      if (bytes > 0) holders.push_back({0, printable(path), bytes, 0});
    }
  }
}

std::string human(std::uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

}  // namespace

std::string describe(const MemoryHolder& holder) {
  std::string text = holder.pid == 0 ? fmt::format("{} {}", holder.name, human(holder.bytes))
                                     : fmt::format("{} (process {}) {}", holder.name, holder.pid, human(holder.bytes));
  bool tell = holder.shared > 0 && human(holder.shared) != human(holder.bytes);
  return tell ? fmt::format("{}, {} of it shared", text, human(holder.shared)) : text;
}

std::vector<MemoryHolder> largest_memory_holders(std::size_t count, const std::string& root) {
  Holders holders;
  add_processes(holders, fs::path(root) / "proc");
  add_files(holders, root, memory_file_systems(fs::path(root) / "proc/self/mounts"));
  std::sort(holders.begin(), holders.end(),
            [](const auto& a, const auto& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name; });
  holders.resize(std::min(count, holders.size()));
  return holders;
}

}  // namespace ganymede::os
