#include "services/worker/engine/job/generation_watch.h"

#include <chrono>

#include "common/base/error.h"

namespace ganymede::worker {

GenerationWatch::GenerationWatch(service::Context& context, std::uint64_t generation,
                                 std::function<void(const std::string&)> over) {
  thread_ = std::thread([this, &context, generation, over = std::move(over)] {
    while (!ending_) {
      std::uint64_t now = context.control().block->generation.load(std::memory_order_acquire);
      if (context.finishing()) return over("the service is asked to finish");
      if (now != generation) return over(fmt::format("generation {} has begun", now));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
}

GenerationWatch::~GenerationWatch() {
  ending_ = true;
  thread_.join();
}

}  // namespace ganymede::worker
