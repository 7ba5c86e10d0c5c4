#pragma once

#include "common/metrics/record.h"
#include "common/os/fd.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ganymede::metrics {

/// No run has more steps; a line that says so is damaged.
constexpr std::int64_t most_step = 1'000'000'000'000;

/// A file of one JSON object a line, each with an integer "step", in the order of the steps. One writer at a time; not
/// for use by several threads at once.
class MetricsFile {
 public:
  /// Opens the file, or makes it. A last line that was torn by a kill is cut off; one that only lacks its end gets it.
  /// Throws Error.
  explicit MetricsFile(const std::string& path);

  /// Appends one line and hands it to the kernel, so that a kill of this process does not lose it. Throws Error when it
  /// cannot be written whole (a full disk); the file then ends with the line before.
  void append(const Record& record);

  /// Step of the last line; -1 when there is none.
  std::int64_t last_step() const;

  /// Leaves out all lines of later steps, and damaged ones: those that cannot be read, have a step that cannot be, or
  /// stand out of the order of the steps. The file is replaced at once: after a kill it is the old or the new one.
  /// Returns a sentence that names file and damaged lines (one torn at the end among them), which is logged as well;
  /// empty when there are none. Throws Error.
  std::string drop_after(std::int64_t step);

 private:
  void open();
  void begin_again_if_removed();
  void mend_end();
  std::string path_;
  os::Fd fd_;
  std::size_t torn_ = 0;  // number of the line that was cut off; 0: none
};

}  // namespace ganymede::metrics
