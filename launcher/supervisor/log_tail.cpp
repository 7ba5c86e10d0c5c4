#include "launcher/supervisor/log_tail.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "common/service/run_directory.h"

namespace ganymede::launcher {
namespace {

constexpr std::streamoff most_bytes = 16 << 10;

std::string tail(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - most_bytes));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::vector<std::string> last_lines(const std::string& text, int count) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  auto wanted = static_cast<std::size_t>(std::max(count, 0));
  if (lines.size() > wanted) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(wanted));
  return lines;
}

std::vector<std::string> last_words(const std::string& text, int count) {
  constexpr int stack_lines = 32;
  auto crash = text.rfind("crashed by ");
  if (crash == std::string::npos) return last_lines(text, count);
  auto lines = last_lines(text.substr(crash), std::numeric_limits<int>::max());
  if (lines.size() > stack_lines) lines.resize(stack_lines);
  return lines;
}

std::string last_log_lines(const ServiceId& id, int count) {
  std::string text;
  for (const char* kind : {"log", "out"}) {
    std::string path = fmt::format("{}/{}.{}", service::log_folder, id.stem(), kind);
    for (const std::string& line : last_words(tail(path), count)) text += fmt::format("\n  {}: {}", path, line);
  }
  return text;
}

}  // namespace ganymede::launcher
