#include "common/os/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "common/base/error.h"
#include "tests/unit/os/scratch.h"

namespace ganymede::os {
namespace {

namespace fs = std::filesystem;

using Files = WithFolder;
using Lock = WithFolder;

std::size_t entries(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST_F(Files, WrittenContentReadsBack) {
  std::string content(200'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  write_file_atomically(in("a"), content);
  EXPECT_EQ(read_file(in("a")), content);
  write_file_atomically(in("a"), "");
  EXPECT_EQ(read_file(in("a")), "");
  EXPECT_EQ(entries(folder), 1u);
}

TEST_F(Files, AFolderInTheWayIsNamedWithTheWayOut) {
  fs::create_directory(in("a"));
  EXPECT_NE(error_of([&] { write_file_atomically(in("a"), "x"); }).find("it is a folder; move it away"),
            std::string::npos);
  EXPECT_EQ(entries(folder), 1u);
}

TEST_F(Files, APipeIsWrittenToAndStaysOne) {
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  Fd reader(::open(in("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  write_file_atomically(in("pipe"), "some");
  char content[8] = {};
  EXPECT_EQ(::read(reader.get(), content, sizeof content), 4);
  EXPECT_STREQ(content, "some");
  struct stat status {};
  ASSERT_EQ(::stat(in("pipe").c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  EXPECT_EQ(entries(folder), 1u);
}

TEST_F(Files, OfALinkTheFileIsReplacedThatItLeadsTo) {
  write_file_atomically(in("a"), "old");
  fs::create_symlink("a", in("link"));
  write_file_atomically(in("link"), "new");
  EXPECT_EQ(read_file(in("a")), "new");
  EXPECT_TRUE(fs::is_symlink(in("link")));
}

TEST_F(Files, FullDiskLeavesTheOldContentAndNoDraft) {
  write_file_atomically(in("a"), "old");
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A limit on the size of files stands in for a disk that gets full in the middle of the write.
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string text = error_of([&] { write_file_atomically(in("a"), std::string(100'000, 'x')); });
    ::_exit(text.find(in("a")) != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(in("a")), "old");
  EXPECT_EQ(entries(folder), 1u);
}

TEST_F(Files, ErrorsNamePathAndReason) {
  EXPECT_EQ(error_of([&] { read_file(in("none")); }), in("none") + " cannot be read: No such file or directory.");
  EXPECT_EQ(error_of([&] { read_file(folder); }), folder + " cannot be read: Is a directory.");
  EXPECT_NE(error_of([&] { write_file_atomically(in("no/such/folder"), "x"); }).find("No such file"),
            std::string::npos);
  write_file_atomically(in("file"), "x");
  EXPECT_EQ(error_of([&] { make_private_folder(in("file")); }),
            "Folder " + in("file") + " cannot be made: a file has this name.");
  EXPECT_NE(error_of([&] { make_private_folder(in("file/below")); }).find(in("file/below")), std::string::npos);
}

TEST_F(Files, APipeInPlaceOfAFileIsRefusedAndHoldsUpNobody) {
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_file(in("pipe")); }), in("pipe") + " is not a file.");
  EXPECT_EQ(error_of([&] { FileMapping map(in("pipe")); }), in("pipe") + " is not a file.");
  EXPECT_EQ(error_of([&] { open_for_append(in("pipe")); }), in("pipe") + " is not a file.");
  EXPECT_EQ(error_of([&] { write_file_atomically(in("pipe"), "x"); }), in("pipe") + " is a pipe that nobody reads.");
  Fd reader(::open(in("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_EQ(error_of([&] { open_for_append(in("pipe")); }), in("pipe") + " is not a file.");
}

TEST_F(Files, PrivateFoldersAreForTheirOwnerAlone) {
  ::umask(0);
  make_private_folder(in("a/b/c"));
  make_private_folder(in("a/b/c"));
  make_private_folder(in("d/"));
  for (const char* name : {"a", "a/b", "a/b/c", "d"}) {
    struct stat status {};
    ASSERT_EQ(::stat(in(name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_mode & 0777, 0700u) << name;
  }
}

TEST_F(Files, MappingShowsTheFile) {
  write_file_atomically(in("a"), "content");
  FileMapping map(in("a"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(map.data), map.size), "content");
  FileMapping other = std::move(map);
  EXPECT_EQ(other.size, 7u);
  write_file_atomically(in("empty"), "");
  other = FileMapping(in("empty"));
  EXPECT_EQ(other.size, 0u);
  EXPECT_NE(error_of([&] { FileMapping bad(folder); }).find("not a file"), std::string::npos);
}

TEST_F(Lock, SecondTakerGetsNothingUntilTheFirstLetsGo) {
  auto first = try_lock(in("run.lock"));
  ASSERT_TRUE(first);
  EXPECT_EQ(read_file(in("run.lock")), std::to_string(::getpid()) + "\n");
  EXPECT_FALSE(try_lock(in("run.lock")));
  EXPECT_EQ(read_file(in("run.lock")), std::to_string(::getpid()) + "\n");
  first.reset();
  EXPECT_TRUE(try_lock(in("run.lock")));
}

TEST_F(Lock, IsTakenOnAFullDiskAsWell) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit full{0, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  auto lock = try_lock(in("run.lock"));
  bool second = try_lock(in("run.lock")).has_value();
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(lock);
  EXPECT_FALSE(second);
}

TEST_F(Lock, KernelReleasesItWhenTheHolderIsKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto lock = try_lock(in("run.lock"));
    char mark = lock ? 'y' : 'n';
    if (::write(ready[1], &mark, 1) == 1) ::pause();
    ::_exit(1);
  }
  char mark = 0;
  ASSERT_EQ(::read(ready[0], &mark, 1), 1);
  EXPECT_EQ(mark, 'y');
  EXPECT_FALSE(try_lock(in("run.lock")));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(try_lock(in("run.lock")));
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace ganymede::os
