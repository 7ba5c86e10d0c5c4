#include "launcher/cli/degraded_view.h"

#include "common/base/printable.h"

namespace ganymede::cli {

std::vector<std::string> degraded(const fbs::Status& status) {
  std::vector<std::string> texts;
  if (status.degraded() == nullptr) return texts;
  for (const auto* text : *status.degraded()) texts.push_back(text->str());
  return texts;
}

std::string degraded_text(const fbs::Status& status) {
  std::string text;
  for (const std::string& one : degraded(status)) text += "\ndegraded: " + printable(one);
  return text;
}

}  // namespace ganymede::cli
