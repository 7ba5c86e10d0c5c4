#include "common/base/threads.h"

namespace ganymede {

std::vector<std::thread> start_threads(int count, const std::function<void(int)>& body,
                                       const std::function<void()>& end) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  } catch (...) {
    end();
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  return threads;
}

}  // namespace ganymede
