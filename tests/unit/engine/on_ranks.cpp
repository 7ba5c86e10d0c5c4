#include "tests/unit/engine/on_ranks.h"

#include <thread>

namespace ganymede::worker {

std::vector<std::exception_ptr> on_ranks(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> faults(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        faults[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return faults;
}

}  // namespace ganymede::worker
