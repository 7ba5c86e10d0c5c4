#include "common/service/checkpoint_name.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <string_view>

namespace ganymede::service {
namespace {

/// 0 when it is no step.
std::uint64_t read_step(std::string_view text) {
  std::uint64_t step = 0;
  auto end = std::from_chars(text.data(), text.data() + text.size(), step);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? step : 0;
}

}  // namespace

CheckpointName read_checkpoint_name(const std::string& text) {
  if (std::uint64_t step = read_step(text); step > 0) return {"", step};
  std::error_code ignored;
  std::size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0 || std::filesystem::exists(text, ignored)) return {text, 0};
  std::uint64_t step = read_step(std::string_view(text).substr(at + 1));
  return step > 0 ? CheckpointName{text.substr(0, at), step} : CheckpointName{text, 0};
}

std::string text_of(const CheckpointName& name) {
  if (name.step == 0) return name.folder;
  return name.folder.empty() ? std::to_string(name.step) : fmt::format("{}@{}", name.folder, name.step);
}

}  // namespace ganymede::service
