#pragma once

#include <exception>
#include <mutex>
#include <string>

#include "services/worker/engine/communicators.h"
#include "services/worker/engine/engine.h"

namespace ganymede::worker {

/// Ends an attempt (the work of one generation) from another thread. Thread-safe.
class AttemptEnd {
 public:
  /// What `over` has to end from now on; if it was called already, that is ended at once. Null: nothing.
  void guard(Communicators* communicators, Engine* engine);
  void over(const std::string& why);
  bool is_over() const;

 private:
  void end();
  mutable std::mutex mutex_;
  std::string why_;
  Communicators* communicators_ = nullptr;
  Engine* engine_ = nullptr;
};

/// Whether a new generation mends this: a lost peer, an attempt that was ended.
bool mended_by_new_generation(const std::exception& fault);

/// What the fault says in one line.
std::string first_line(const std::exception& fault);

/// Throws the fault as an Error of the code that its cause has.
[[noreturn]] void rethrow_as_error(const std::exception& fault);

}  // namespace ganymede::worker
