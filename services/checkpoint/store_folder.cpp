#include "services/checkpoint/store_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "common/base/error.h"
#include "services/checkpoint/rocks.h"

namespace ganymede::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t digits = 6;  // in the name of a table file

/// The table file that RocksDB misses; it names it as versions long ago did, ".ldb". Empty: another fault.
std::string missing_table(const std::string& text, const fs::path& folder) {
  for (std::size_t at = text.find(".ldb"); at != std::string::npos; at = text.find(".ldb", at + 1)) {
    if (at < digits) continue;
    std::string number = text.substr(at - digits, digits);
    bool is_number = std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    std::error_code ignored;
    if (is_number && !fs::exists(folder / (number + ".sst"), ignored)) return number + ".sst";
  }
  return "";
}

/// RocksDB repeats paths and reasons behind the first.
std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 160;
  std::string line = text.substr(0, text.find('\n'));
  return line.size() <= longest ? line : line.substr(0, longest) + "…";
}

}  // namespace

std::string why_not_opened(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    fs::file_status status = fs::status(at->path(), gone);
    if (!fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status)) continue;
    return fmt::format("{} is not a file: put it back from a copy, or remove it", at->path().string());
  }
  return "";
}

void check_opened(const rocksdb::Status& status, const std::string& folder) {
  if (status.ok()) return;
  if (!status.IsCorruption()) check(status, fmt::format("The checkpoint database {} cannot be opened", folder));
  fs::path store = fs::absolute(folder).lexically_normal();
  std::string missing = missing_table(status.ToString(), store);
  fail("The checkpoint database {} {}: put it back from a copy, or start a new run in another folder with --from {}.",
       store.string(),
       missing.empty() ? fmt::format("is damaged ({})", shortened(reason(status))) : "lacks its file " + missing,
       store.parent_path().string());
}

}  // namespace ganymede::checkpoint
