#pragma once

#include <cstdint>
#include <string>

#include "common/base/deadline.h"

namespace ganymede::checkpoint {

/// One line on the terminal (stderr, if it is one) that says how far a long reading is. Appears after two seconds.
class ProgressLine {
 public:
  explicit ProgressLine(std::string doing);
  void show(std::uint64_t done, std::uint64_t total);
  void clear();

 private:
  std::string doing_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point began_ = Clock::now(), last_ = began_;
};

}  // namespace ganymede::checkpoint
