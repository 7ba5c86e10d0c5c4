#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::data {

struct SourceFile {
  std::string path;
  std::uint64_t bytes = 0;
  bool lines_of_json() const { return path.ends_with(".jsonl"); }
};

/// The files that a list of sources names, each once.
struct SourceFiles {
  std::vector<SourceFile> files;
  std::uint64_t unreadable = 0;  // files and folders that could not be looked at
  std::uint64_t bytes() const;
};

/// Expands `sources` in their order: a file is taken whatever its extension; of a folder all files below it whose
/// name ends in one of `extensions` (".py"), sorted by path; a name with *, ? or [ that is no file is a pattern.
/// Symbolic links inside folders are not followed; sockets, pipes and devices are left alone. Throws Error(usage)
/// when a source does not exist or a pattern matches nothing.
SourceFiles find_sources(const std::vector<std::string>& sources, const std::vector<std::string>& extensions);

}  // namespace ganymede::data
