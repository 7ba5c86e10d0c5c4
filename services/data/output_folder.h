#pragma once

#include <string>

#include "common/base/deadline.h"
#include "common/os/fd.h"

namespace ganymede::data {

/// A folder that comes to be whole or not at all: built as ".<name>.packing" beside its place and renamed when it is
/// complete. The unfinished folder is locked while its builder lives; what a killed one left is cleared by the next.
class OutputFolder {
 public:
  /// Waits up to `wait` for another process that builds the same folder. Throws Error naming the folder and the
  /// reason when that one is not done by then, or when the folder cannot be made.
  OutputFolder(const std::string& target, Deadline wait);
  /// Removes the unfinished folder unless it was published.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Path of a file inside the unfinished folder.
  std::string file(const std::string& name) const { return draft_ + "/" + name; }
  /// Syncs and renames. Throws Error when something has taken the place meanwhile.
  void publish();

  /// Whether something other than an empty folder is at `target`.
  static bool taken(const std::string& target);

 private:
  std::string target_, draft_;
  os::Fd lock_;
  bool published_ = false;
};

}  // namespace ganymede::data
