#pragma once

#include <string>

namespace ganymede::test {

/// Why no disk can be put into a folder here; empty when one can. A test skips with this text. From the first call on,
/// mounts of this process and of what it starts are their own.
std::string disk_obstacle();

/// A disk of its own, in memory, that lies in a folder while the object lives. Needs the right to mount (root).
class SmallDisk {
 public:
  /// Makes the folder. Throws Error.
  SmallDisk(const std::string& folder, int megabytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// Takes all room that is left, or gives it back.
  void fill();
  void make_room();

  /// From now on no file of it can be opened to be written, as on a disk that the kernel has put out of harm's way; or
  /// all can again. Files that are open stay as they are.
  void set_read_only(bool read_only);

 private:
  std::string folder_;
  bool covered_ = false;
};

}  // namespace ganymede::test
