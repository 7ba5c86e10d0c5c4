#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace ganymede::optimizer {

/// A few threads that share short pieces of work: fork and join cost about a microsecond while work keeps coming,
/// and the threads sleep when it does not. Whoever is running takes the next piece, so that a thread which the system
/// has put aside, for a worker's that computes on the same core, holds up nobody. Used by one thread at a time.
class Team {
 public:
  /// `threads` ≥ 1, the calling thread included.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Pieces of a round: 1 for one thread, else at least one a thread.
  int pieces() const { return pieces_; }
  /// Calls work(0) … work(pieces() - 1), here and in the other threads; returns when all are done. `work` does not
  /// throw.
  void run(const std::function<void(int)>& work);

 private:
  void member();
  void take_pieces();
  void end();

  int pieces_;
  const std::function<void(int)>* work_ = nullptr;  // of the round whose pieces are left
  std::atomic<std::uint32_t> round_{0};
  std::atomic<int> next_{0};  // piece; ≥ pieces(): none is left
  std::atomic<int> done_{0};
  std::atomic<bool> ending_{false};
  std::vector<std::thread> members_;  // last: they use what is above
};

}  // namespace ganymede::optimizer
