#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/supervisor/terminal.h"

namespace ganymede::launcher {

/// What does not work while training goes on ("metrics", "checkpoints"), and why. The log and the terminal say when it
/// begins and when it is over; `ctl status` shows it meanwhile. Not thread-safe.
class Degraded {
 public:
  explicit Degraded(Terminal& terminal) : terminal_(terminal) {}

  /// `part` does not work because of `text`, a sentence or more. Said when it is news: not while `part` fails on.
  void fails(const std::string& part, const std::string& text);
  /// The same of a failure that the caller has told of.
  void fails_as_told(const std::string& part, const std::string& text) { failing_[part] = text; }
  /// It does; says so if it had failed before.
  void works(const std::string& part);

  /// Why each part that fails does, by part.
  std::vector<std::string> texts() const;

 private:
  Terminal& terminal_;
  std::map<std::string, std::string> failing_;
};

}  // namespace ganymede::launcher
