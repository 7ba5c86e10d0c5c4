#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "common/service/service.h"

namespace ganymede::worker {

/// Looks every 20 ms whether the generation is over or the service must finish, and then calls `over` once, in its own
/// thread, with a sentence that says why.
class GenerationWatch {
 public:
  GenerationWatch(service::Context& context, std::uint64_t generation, std::function<void(const std::string&)> over);
  /// Ends the thread; `over` is not running any more afterwards.
  ~GenerationWatch();

 private:
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace ganymede::worker
