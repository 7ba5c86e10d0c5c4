#include "services/optimizer/plugin_guard.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/os/files.h"
#include "common/os/process.h"

namespace ganymede::optimizer {
namespace {

/// In memory that both processes have.
struct Note {
  std::atomic<bool> inside{false};  // the plugin's code runs
  std::array<char, 4096> file{};
};

Note* noted = nullptr;  // of the process that is guarded

class SharedNote {
 public:
  SharedNote() {
    memory_ = ::mmap(nullptr, sizeof(Note), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) fail("No memory for a plugin to be loaded: {}.", std::strerror(errno));
    note_ = new (memory_) Note;
  }
  ~SharedNote() { ::munmap(memory_, sizeof(Note)); }
  SharedNote(const SharedNote&) = delete;
  SharedNote& operator=(const SharedNote&) = delete;
  Note& operator*() const { return *note_; }

 private:
  void* memory_;
  Note* note_ = nullptr;
};

/// Nothing of the plugin runs at its end, and nothing of what this process does at its own.
[[noreturn]] void be_guarded(Note& note, pid_t parent, const std::function<int()>& body) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(static_cast<int>(ExitCode::failed));
  noted = &note;
  int code = body();
  std::fflush(nullptr);
  ::_exit(code);
}

os::Child start(Note& note, const std::function<int()>& body) {
  std::fflush(nullptr);
  pid_t parent = ::getpid();
  os::Child child;
  child.pid = ::fork();
  if (child.pid < 0) fail("No process could be started to load plugins in: {}.", std::strerror(errno));
  if (child.pid == 0) be_guarded(note, parent, body);
  child.pidfd = os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.pidfd) {
    ::kill(child.pid, SIGKILL);
    fail("The process that loads plugins cannot be watched: {}.", std::strerror(errno));
  }
  return child;
}

}  // namespace

int guarded(const GuardLimit& limit, const std::function<int()>& body) {
  SharedNote shared;
  auto ending = os::await_ending(start(*shared, body), Deadline::after_seconds(limit.seconds));
  const Note& note = *shared;
  bool inside = note.inside.load(std::memory_order_acquire);
  std::string time = human_seconds(limit.seconds);
  if (!ending && inside)
    fail(
        "optimizer plugin {} was still being loaded and tried after {}: its constructors, its entry or its functions "
        "do not return; mend it{}",
        note.file.data(), time, limit.longer);
  if (!ending)
    fail("optimizer plugins were not loaded and checked after {}: the machine is too busy{}", time, limit.longer);
  if (inside)
    fail("optimizer plugin {} ended the program that loads it ({}): mend it, or name another", note.file.data(),
         ending->describe());
  if (ending->signal != 0) fail("the program that loads optimizer plugins was {}", ending->describe());
  return ending->exit_code;
}

std::string guarded_text(const GuardLimit& limit, const std::function<std::string()>& body) {
  os::Fd answer(::memfd_create("answer", MFD_CLOEXEC));
  if (!answer) fail("No memory for what a plugin is asked: {}.", std::strerror(errno));
  int code = guarded(limit, [&] {
    std::string text = body();
    return ::write(answer.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  });
  if (code != 0) fail("What a plugin answers cannot be kept: there is no memory for it.");
  return os::read_file(fmt::format("/proc/self/fd/{}", answer.get()));
}

InPlugin::InPlugin(const std::string& file) {
  if (!noted || noted->inside.load(std::memory_order_relaxed)) return;
  counts_ = true;
  std::size_t length = std::min(file.size(), noted->file.size() - 1);
  std::memcpy(noted->file.data(), file.data(), length);
  noted->file[length] = '\0';
  noted->inside.store(true, std::memory_order_release);
}

InPlugin::~InPlugin() {
  if (counts_) noted->inside.store(false, std::memory_order_release);
}

}  // namespace ganymede::optimizer
