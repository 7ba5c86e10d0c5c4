#include "services/optimizer/team.h"

#include <algorithm>

#include "common/base/threads.h"

namespace ganymede::optimizer {
namespace {

constexpr int spins = 2000;       // some ten microseconds: longer than the time between the chunks of a step
constexpr int fewest_pieces = 8;  // of a chunk that threads share: some 2,000 elements

}  // namespace

Team::Team(int threads)
    : pieces_(threads > 1 ? std::max(threads, fewest_pieces) : 1),
      next_(pieces_),
      members_(start_threads(
          std::max(threads - 1, 0), [this](int) { member(); }, [this] { end(); })) {}

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
  work_ = &work;  // nobody reads it: no piece of the round before is left
  done_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_release);
  if (!members_.empty()) {
    round_.fetch_add(1);
    round_.notify_all();
  }
  take_pieces();
  for (int i = 0; done_.load(std::memory_order_acquire) != pieces_; i++) {
    if (i >= spins) std::this_thread::yield();
  }
}

/// Also right when a member comes late, in a round after the one that it was woken for.
void Team::take_pieces() {
  for (int piece = next_.fetch_add(1, std::memory_order_acquire); piece < pieces_;
       piece = next_.fetch_add(1, std::memory_order_acquire)) {
    (*work_)(piece);
    done_.fetch_add(1, std::memory_order_release);
  }
}

void Team::member() {
  std::uint32_t seen = 0;
  while (true) {
    for (int i = 0; i < spins && round_.load(std::memory_order_acquire) == seen; i++) continue;
    round_.wait(seen);
    seen = round_.load(std::memory_order_acquire);
    if (ending_.load()) return;
    take_pieces();
  }
}

}  // namespace ganymede::optimizer
