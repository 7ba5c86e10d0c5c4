#pragma once

#include <cstdint>
#include <string>

#include "common/os/fd.h"

namespace ganymede::data {

/// Notices that a file which is mapped is written to: what was read of it once may then be something else. A file that
/// another one has replaced under its name is still what it was.
class FileWatch {
 public:
  /// Begins now; later than that nothing stays unnoticed. Throws Error naming the file.
  explicit FileWatch(const std::string& path);

  /// What happened since. `touched`: its attributes, most often; its content only if somebody put the old time back.
  enum class Change { none, touched, content };
  Change change() const;

 private:
  struct Stamp {
    std::int64_t bytes = 0, modified_ns = 0, changed_ns = 0;
  };
  Stamp look() const;

  std::string path_;
  os::Fd file_;
  Stamp first_;
};

}  // namespace ganymede::data
