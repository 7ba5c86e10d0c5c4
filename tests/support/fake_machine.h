#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace ganymede::test {

/// A folder that stands for / of a machine, with the files under proc/ and sys/ that a test writes.
class FakeMachine {
 public:
  const std::string& root() const { return folder_.path(); }

  void file(const std::string& path, const std::string& content) const {
    std::filesystem::path file = std::filesystem::path(root()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }

  /// /proc/meminfo.
  void memory(long total_kib, long available_kib) const {
    file("proc/meminfo", "MemTotal:  " + std::to_string(total_kib) +
                             " kB\nMemFree:  1 kB\nMemAvailable:  " + std::to_string(available_kib) + " kB\n");
  }

  /// A NUMA node whose page cache is `pages_kib`, `shared_kib` of it shared memory.
  void node(int number, long total_kib, long free_kib, long pages_kib, long shared_kib) const {
    std::string name = "Node " + std::to_string(number) + " ";
    file("sys/devices/system/node/node" + std::to_string(number) + "/meminfo",
         name + "MemTotal:       " + std::to_string(total_kib) + " kB\n" + name + "MemFree:        " +
             std::to_string(free_kib) + " kB\n" + name + "FilePages:      " + std::to_string(pages_kib) + " kB\n" +
             name + "Shmem:          " + std::to_string(shared_kib) + " kB\n");
  }

  void process(int pid, const std::string& name, long anonymous_kib, long shared_kib) const {
    std::string folder = "proc/" + std::to_string(pid) + "/";
    file(folder + "comm", name + "\n");
    file(folder + "status", "Name:\t" + name + "\nRssAnon:\t" + std::to_string(anonymous_kib) +
                                " kB\nRssFile:\t999999 kB\nRssShmem:\t" + std::to_string(shared_kib) + " kB\n");
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace ganymede::test
