#include "services/optimizer/team.h"

#include <algorithm>

#include "common/base/threads.h"

namespace ganymede::optimizer {
namespace {

constexpr int spins = 2000;  // some ten microseconds: longer than the time between the chunks of a step

}  // namespace

Team::Team(int threads)
    : members_(start_threads(
          std::max(threads - 1, 0), [this](int i) { member(i + 1); }, [this] { end(); })) {}

Team::~Team() {
  end();
  for (std::thread& thread : members_) thread.join();
}

void Team::end() {
  ending_.store(true);
  round_.fetch_add(1);
  round_.notify_all();
}

void Team::run(const std::function<void(int)>& work) {
  if (!members_.empty()) {
    work_ = &work;
    busy_.store(static_cast<int>(members_.size()), std::memory_order_relaxed);
    round_.fetch_add(1);
    round_.notify_all();
  }
  work(0);
  for (int i = 0; busy_.load(std::memory_order_acquire) != 0; i++) {
    if (i >= spins) std::this_thread::yield();
  }
}

void Team::member(int index) {
  std::uint32_t seen = 0;
  while (true) {
    for (int i = 0; i < spins && round_.load(std::memory_order_acquire) == seen; i++) continue;
    round_.wait(seen);
    seen++;
    if (ending_.load()) return;
    (*work_)(index);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace ganymede::optimizer
