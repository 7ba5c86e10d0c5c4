#include "services/optimizer/team.h"

#include <hwy/cache_control.h>

#include <algorithm>

#include "common/base/threads.h"

namespace ganymede::optimizer {
namespace {

constexpr int spins =
    2000;  // some tens of microseconds where a pause takes time: longer than the time between the spans of a step
constexpr int fewest_pieces = 8;

}  // namespace

Team::Team(int threads) : Team(threads, threads > 1 ? std::max(threads, fewest_pieces) : 1) {}

Team::Team(int threads, int pieces) : pieces_(pieces), shares_(static_cast<std::size_t>(std::max(threads, 1))) {
  int count = std::max(threads, 1);
  for (int i = 0; i < count; i++) {
    shares_[i].begin = pieces_ * i / count;
    shares_[i].end = pieces_ * (i + 1) / count;
    shares_[i].next = shares_[i].end;
  }
  members_ = start_threads(
      count - 1, [this](int i) { member(i + 1); }, [this] { end(); });
}

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
  for (Share& share : shares_) share.next.store(share.begin, std::memory_order_release);
  if (!members_.empty()) {
    round_.fetch_add(1);
    round_.notify_all();
  }
  take_pieces(0);
  for (int i = 0; done_.load(std::memory_order_acquire) != pieces_; i++) {
    if (i < spins) {
      hwy::Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

/// Also right when a member comes late, in a round after the one that it was woken for.
void Team::take_pieces(int thread) {
  int done = 0;
  for (std::size_t i = 0; i < shares_.size(); i++) {
    Share& share = shares_[(static_cast<std::size_t>(thread) + i) % shares_.size()];
    while (share.next.load(std::memory_order_relaxed) < share.end) {  // a look leaves the line with who counts on it
      int piece = share.next.fetch_add(1, std::memory_order_acquire);
      if (piece >= share.end) break;
      (*work_)(piece);
      done++;
    }
  }
  if (done > 0) done_.fetch_add(done, std::memory_order_release);
}

void Team::member(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    for (int i = 0; i < spins && round_.load(std::memory_order_acquire) == seen; i++) hwy::Pause();
    round_.wait(seen);
    seen = round_.load(std::memory_order_acquire);
    if (ending_.load()) return;
    take_pieces(thread);
  }
}

}  // namespace ganymede::optimizer
