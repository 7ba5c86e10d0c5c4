#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace ganymede::test {

/// Makes `path` a program of the same content as `program` but for a byte behind its end: another build of it.
inline std::string other_build(const std::string& program, const std::string& path) {
  std::filesystem::copy_file(program, path);
  std::ofstream(path, std::ios::app) << '+';
  return path;
}

/// Makes `path` a program that says of itself what `program` says, and then, as a service, runs `command` in a shell.
inline std::string play_build(const std::string& program, const std::string& path, const std::string& command) {
  std::ofstream(path) << "#!/bin/sh\nif [ \"$1\" = --protocol ]; then exec " << program << " \"$@\"; fi\n"
                      << command << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

/// Name of the file that a process runs, without its folder.
inline std::string running_file(int pid) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", ignored).filename().string();
}

}  // namespace ganymede::test
