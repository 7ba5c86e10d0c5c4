#include "launcher/supervisor/degraded.h"

#include "common/base/log.h"

namespace ganymede::launcher {

void Degraded::fails(const std::string& part, const std::string& text) {
  bool news = !failing_.contains(part);
  failing_[part] = text;
  if (!news) return;
  log::error("{}", text);
  terminal_.line(text);
}

void Degraded::works(const std::string& part) {
  if (failing_.erase(part) == 0) return;
  std::string line = part + " are written again";
  log::info("{}", line);
  terminal_.line(line);
}

std::vector<std::string> Degraded::texts() const {
  std::vector<std::string> all;
  for (const auto& [part, text] : failing_) all.push_back(text);
  return all;
}

}  // namespace ganymede::launcher
