#pragma once

#include "common/metrics/record.h"
#include "common/os/fd.h"

#include <cstdint>
#include <string>

namespace ganymede::metrics {

/// A file of one JSON object a line, each with an integer "step", in the order of the steps. One writer at a time; not
/// for use by several threads at once.
class MetricsFile {
 public:
  /// Opens the file, or makes it. A last line without its end, left by a kill, is cut off. Throws Error.
  explicit MetricsFile(const std::string& path);

  /// Appends one line and hands it to the kernel, so that a kill of this process does not lose it. Throws Error when it
  /// cannot be written whole (a full disk); the file then ends with the line before.
  void append(const Record& record);

  /// Step of the last line; -1 when there is none.
  std::int64_t last_step() const;

  /// Leaves out all lines of later steps, and damaged lines (each is logged). The file is replaced at once: after a
  /// kill it is the old or the new one. Throws Error.
  void drop_after(std::int64_t step);

 private:
  void open();
  std::string path_;
  os::Fd fd_;
};

}  // namespace ganymede::metrics
