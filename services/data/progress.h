#pragma once

#include <cstdint>
#include <string>

#include "common/base/deadline.h"

namespace ganymede::data {

/// "packing | 12 MiB of 64 MiB | 18% | 1.5 MiB/s | 35 s left"; "packing | 8.0 s" where `total` (bytes) is 0: not known.
std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total, double seconds);

/// Says on stderr how far a long piece of work is and when it will be done. On a terminal: one line that appears after
/// two seconds and goes when the work ends. Elsewhere (a log): a line after ten seconds, then one every thirty. One
/// thread.
class Progress {
 public:
  /// `total` in bytes; 0: not known.
  Progress(std::string what, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` bytes of the total, at `now`, which never goes back.
  void at(std::uint64_t done, Clock::time_point now = Clock::now());
  /// Shows what is done now, at once: for work that cannot say how far it is.
  void show();

 private:
  std::string what_;
  std::uint64_t total_;
  bool terminal_, visible_ = false;
  Clock::time_point begin_, next_;  // next_: from when something is said again
};

}  // namespace ganymede::data
