#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace ganymede::optimizer {

/// A few threads that share short pieces of work: fork and join cost about a microsecond while work keeps coming,
/// and the threads sleep when it does not. A thread takes the same pieces in every round, so that what one round left
/// in its core's caches is there in the next; then it takes what others have left, so that a thread which the system
/// has put aside, for a worker's that computes on the same core, holds up nobody. Used by one thread at a time.
class Team {
 public:
  /// `threads` ≥ 1, the calling thread included. `pieces` ≥ 1: of a round.
  Team(int threads, int pieces);
  /// With 1 piece for one thread, else at least one a thread.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Pieces of a round.
  int pieces() const { return pieces_; }
  /// Calls work(0) … work(pieces() - 1), here and in the other threads; returns when all are done. `work` does not
  /// throw.
  void run(const std::function<void(int)>& work);

 private:
  /// What is left of a thread's own pieces. On a cache line of its own, as are the words below.
  struct alignas(64) Share {
    std::atomic<int> next{0};
    int begin = 0, end = 0;
  };

  void member(int thread);
  void take_pieces(int thread);
  void end();

  int pieces_;
  std::vector<Share> shares_;                       // [threads]
  const std::function<void(int)>* work_ = nullptr;  // of the round whose pieces are left
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<int> done_{0};
  std::atomic<bool> ending_{false};
  std::vector<std::thread> members_;  // last: they use what is above
};

}  // namespace ganymede::optimizer
