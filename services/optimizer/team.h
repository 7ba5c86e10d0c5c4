#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace ganymede::optimizer {

/// A few threads that share short pieces of work: fork and join cost about a microsecond while work keeps coming,
/// and the threads sleep when it does not. Used by one thread at a time.
class Team {
 public:
  /// `threads` ≥ 1, the calling thread included.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(members_.size()) + 1; }
  /// Calls work(0) here and work(1) … work(size() - 1) in the others; returns when all have. `work` does not throw.
  void run(const std::function<void(int)>& work);

 private:
  void member(int index);
  void end();

  const std::function<void(int)>* work_ = nullptr;
  std::atomic<std::uint32_t> round_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> ending_{false};
  std::vector<std::thread> members_;  // last: they use what is above
};

}  // namespace ganymede::optimizer
