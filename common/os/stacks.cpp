#include "common/os/stacks.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "common/os/fd.h"

namespace ganymede::os {
namespace {

constexpr int most_frames = 64;
constexpr auto patience = std::chrono::milliseconds(200);

/// What the thread that is asked writes into, once it has taken the question.
struct Answer {
  void* frames[most_frames];
  std::atomic<int> depth{0};
  std::atomic<long> asked_thread{nobody};
  static constexpr long nobody = 0, taken = -1, done = -2;
};
Answer answer;

int stack_signal() { return SIGRTMIN + 4; }

/// A thread that comes late, when nobody or another one is asked, leaves everything alone.
void on_stack_signal(int) {
  int before = errno;
  long self = ::syscall(SYS_gettid);
  if (answer.asked_thread.compare_exchange_strong(self, Answer::taken)) {
    answer.depth.store(::backtrace(answer.frames, most_frames));
    answer.asked_thread.store(Answer::done);
  }
  errno = before;
}

std::vector<long> threads() {
  std::vector<long> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ids.push_back(std::stol(entry.path().filename().string()));
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string name_of(long thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/comm", thread));
  std::string name;
  std::getline(file, name);
  return name;
}

/// Looks until `over()`, for as long as anybody has patience; what it said last.
template <class Over>
bool await(const Over& over) {
  auto limit = std::chrono::steady_clock::now() + patience;
  while (!over() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  return over();
}

/// Number of frames that the thread has written; 0: it did not answer. One that took the question and never ends its
/// answer (it hangs in the unwinder) may still write: then nobody is asked any more.
int ask(long thread) {
  if (answer.asked_thread.load() == Answer::taken) return 0;
  answer.asked_thread.store(thread);
  if (::syscall(SYS_tgkill, ::getpid(), thread, stack_signal()) == 0)
    await([&] { return answer.asked_thread.load() != thread; });
  long unanswered = thread;
  if (answer.asked_thread.compare_exchange_strong(unanswered, Answer::nobody)) return 0;
  return await([] { return answer.asked_thread.load() == Answer::done; }) ? answer.depth.load() : 0;
}

void put(const Fd& file, const std::string& path, const std::string& text) {
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail("{} cannot be written: {}.", path, std::strerror(errno));
}

}  // namespace

void prepare_stacks() {
  void* frame[1];
  ::backtrace(frame, 1);  // the first call loads a library
  struct sigaction action {};
  action.sa_handler = on_stack_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(stack_signal(), &action, nullptr);
}

void write_stacks(const std::string& path) {
  static std::mutex turn;
  std::lock_guard lock(turn);
  std::string made = path + ".new";
  Fd file(::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) fail("{} cannot be written: {}.", made, std::strerror(errno));
  for (long thread : threads()) {
    int depth = ask(thread);
    put(file, made,
        fmt::format("thread {} \"{}\"{}\n", thread, name_of(thread), depth > 0 ? "" : ": takes no signals"));
    if (depth > 0) ::backtrace_symbols_fd(answer.frames, depth, file.get());
  }
  if (::rename(made.c_str(), path.c_str()) != 0) fail("{} cannot be written: {}.", path, std::strerror(errno));
}

}  // namespace ganymede::os
