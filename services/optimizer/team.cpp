#include "services/optimizer/team.h"

namespace ganymede::optimizer {
namespace {

constexpr int spins = 2000;  // some ten microseconds: longer than the time between the chunks of a step

}  // namespace

Team::Team(int threads) {
  for (int i = 1; i < threads; i++) members_.emplace_back([this, i] { member(i); });
}

Team::~Team() {
  ending_.store(true);
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& thread : members_) thread.join();
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
