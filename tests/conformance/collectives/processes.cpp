#include "tests/conformance/collectives/processes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/base/error.h"
#include "common/os/fd.h"

namespace ganymede::collectives {

std::string FolderStore::path_of(const std::string& key) const {
  std::string name = key;
  std::replace(name.begin(), name.end(), '/', '_');
  return folder_ + "/" + name;
}

void FolderStore::set(const std::string& key, ConstBytes value) {
  std::string path = path_of(key), draft = path + ".draft." + std::to_string(::getpid());
  std::ofstream(draft, std::ios::binary).write(reinterpret_cast<const char*>(value.data()), value.size());
  std::filesystem::rename(draft, path);
}

std::vector<std::byte> FolderStore::get(const std::string& key, Deadline deadline) {
  while (!std::filesystem::exists(path_of(key))) {
    if (deadline.passed()) throw CollectiveError("nobody set " + key);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::ifstream file(path_of(key), std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  auto* bytes = reinterpret_cast<const std::byte*>(content.data());
  return {bytes, bytes + content.size()};
}

std::int64_t FolderStore::add(const std::string& key, std::int64_t amount) {
  FILE* file = std::fopen((path_of(key) + ".count").c_str(), "a+");
  GANYMEDE_CHECK(file != nullptr && ::flock(::fileno(file), LOCK_EX) == 0, "a test's counter cannot be locked");
  long long value = 0;
  std::rewind(file);
  if (std::fscanf(file, "%lld", &value) != 1) value = 0;
  GANYMEDE_CHECK(::ftruncate(::fileno(file), 0) == 0, "a test's counter cannot be written");
  std::fprintf(file, "%lld", value + amount);
  std::fclose(file);
  return value + amount;
}

Processes::Processes(const Setting& setting, int ranks)
    : setting_(setting), ranks_(ranks), memory_(std::make_shared<PublishedMemory>(ranks)), pids_(ranks, 0) {
  char name[] = "/tmp/collectives.XXXXXX";
  GANYMEDE_CHECK(::mkdtemp(name) != nullptr, "no folder for a test");
  folder_ = name;
}

Processes::~Processes() {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (pids_[rank] <= 0) continue;
    ::kill(pids_[rank], SIGKILL);
    ::waitpid(pids_[rank], nullptr, 0);
  }
  std::filesystem::remove_all(folder_);
}

void Processes::start(int rank, const RankBody& body) {
  pid_t pid = ::fork();
  GANYMEDE_CHECK(pid >= 0, "a test cannot fork");
  if (pid > 0) {
    pids_[rank] = pid;
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 0;
  try {
    Member member(setting_, rank, ranks_, std::make_shared<FolderStore>(folder_), memory_);
    body(member);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    code = 1;
  }
  ::_exit(code);
}

void Processes::kill(int rank) { ::kill(pids_[rank], SIGKILL); }

int Processes::ending(int rank, Deadline deadline) {
  int status = 0;
  while (::waitpid(pids_[rank], &status, WNOHANG) == 0) {
    if (deadline.passed()) return -1000;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  pids_[rank] = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace ganymede::collectives
