#pragma once

#include <cstdint>
#include <string>

#include "common/base/deadline.h"

namespace ganymede::data {

/// One line on a terminal that says how far a long piece of work is and when it will be done; it appears after two
/// seconds and goes when the work ends. Silent when stderr is no terminal. One thread.
class Progress {
 public:
  /// `total` in bytes; 0: not known.
  Progress(std::string what, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// `done` bytes of the total.
  void at(std::uint64_t done);
  /// Shows what is done now, at once: for work that cannot say how far it is.
  void show();

 private:
  std::string what_;
  std::uint64_t total_;
  Clock::time_point begin_, shown_;
  bool terminal_, visible_ = false;
};

}  // namespace ganymede::data
