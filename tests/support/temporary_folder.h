#pragma once

#include <string>

namespace ganymede::test {

/// A new folder under the system's folder for temporary files, removed with all that is in it. Short, so that socket
/// paths inside it are allowed. Throws Error.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ganymede::test
