#include "services/data/sources.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "common/base/error.h"

namespace ganymede::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> expand(const std::string& source) {
  std::error_code error;
  if (fs::exists(source, error)) return {source};
  if (source.find_first_of("*?[") == std::string::npos)
    fail_usage("Source {} does not exist: name text files, .jsonl files or folders.", source);
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(source.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (paths.empty()) fail_usage("No file or folder matches source {}.", source);
  return paths;  // sorted by glob
}

bool wanted(const std::string& name, const std::vector<std::string>& extensions) {
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const std::string& ending) { return name.ends_with(ending) && name.size() > ending.size(); });
}

/// Adds the wanted files below `folder`, in no order.
void walk(const std::string& folder, const std::vector<std::string>& extensions, SourceFiles& out) {
  std::vector<fs::path> open = {folder};
  while (!open.empty()) {
    fs::path here = open.back();
    open.pop_back();
    std::error_code error;
    fs::directory_iterator entry(here, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      std::error_code unknown;
      fs::file_status status = entry->symlink_status(unknown);
      if (fs::is_directory(status)) open.push_back(entry->path());
      if (!fs::is_regular_file(status) || !wanted(entry->path().filename().string(), extensions)) continue;
      std::uintmax_t bytes = entry->file_size(unknown);
      if (unknown)
        ++out.unreadable;
      else
        out.files.push_back({entry->path().string(), bytes});
    }
    if (error) ++out.unreadable;
  }
}

SourceFiles files_of(const std::string& path, const std::vector<std::string>& extensions) {
  SourceFiles found;
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    walk(path, extensions, found);
    std::sort(found.files.begin(), found.files.end(), [](auto& a, auto& b) { return a.path < b.path; });
  } else if (fs::is_regular_file(status)) {
    found.files.push_back({path, fs::file_size(path, error)});
  } else {
    fail_usage("Source {} is neither a file nor a folder.", path);
  }
  return found;
}

}  // namespace

std::uint64_t SourceFiles::bytes() const {
  std::uint64_t sum = 0;
  for (const SourceFile& file : files) sum += file.bytes;
  return sum;
}

SourceFiles find_sources(const std::vector<std::string>& sources, const std::vector<std::string>& extensions) {
  SourceFiles all;
  std::set<std::string> seen;
  for (const std::string& source : sources) {
    for (const std::string& path : expand(source)) {
      SourceFiles found = files_of(path, extensions);
      all.unreadable += found.unreadable;
      for (SourceFile& file : found.files) {
        std::error_code error;
        std::string name = fs::weakly_canonical(file.path, error).string();
        if (seen.insert(error ? file.path : name).second) all.files.push_back(std::move(file));
      }
    }
  }
  return all;
}

}  // namespace ganymede::data
