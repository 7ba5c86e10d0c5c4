#pragma once

#include <string>
#include <vector>

#include "common/os/fd.h"

/// The other programs of the tree as children: what checkpoint and data formats look like stays with their services.
namespace ganymede::worker {

/// A running sibling program whose stdin is written from here and whose stdout is inherited.
class Sibling {
 public:
  /// arguments[0] is the name ("ganymede-data"). Throws Error when it cannot be started.
  explicit Sibling(const std::vector<std::string>& arguments);
  /// Closes its stdin and waits for its end.
  ~Sibling();
  Sibling(const Sibling&) = delete;
  Sibling& operator=(const Sibling&) = delete;
  /// When it does not read any more, as `finish`, and throws Error in any case.
  void write(const std::string& text);
  /// Closes its stdin and waits for its end. Throws Error with its exit code when that is not 0, without a text: it has
  /// said itself what was wrong.
  void finish();

 private:
  int pid_ = -1;
  os::Fd input_;
};

/// Runs a sibling program to its end, with `input` as its stdin, and returns its stdout. Throws Error with its exit
/// code when that is not 0, and its own message, the last line of its stderr. Other lines of that go to this stderr.
std::string run_sibling(const std::vector<std::string>& arguments, const std::string& input = "");

}  // namespace ganymede::worker
