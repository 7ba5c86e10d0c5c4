#include "common/metrics/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/files.h"

namespace ganymede::metrics {
namespace {

std::string_view text_of(const os::FileMapping& map) {
  return {reinterpret_cast<const char*>(map.data), static_cast<std::size_t>(map.size)};
}

/// The "step" of a line; nothing when the line is damaged.
std::optional<std::int64_t> step_of(std::string_view line) {
  auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  auto step = object.find("step");
  if (step == object.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<std::int64_t>();
}

/// Takes the first line off `text`, which ends with a line end.
std::string_view take_line(std::string_view& text) {
  auto end = text.find('\n') + 1;
  auto line = text.substr(0, end);
  text.remove_prefix(end);
  return line;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path) : path_(path) {
  open();
  os::FileMapping map(path_);
  auto text = text_of(map);
  auto whole = text.rfind('\n') + 1;  // 0 when there is no line end: npos + 1
  if (whole == text.size()) return;
  log::warn("Metrics file {} ended in the middle of a line; the torn line is cut off.", path_);
  if (::ftruncate(fd_.get(), static_cast<off_t>(whole)) != 0) {
    fail("Metrics file {} cannot be shortened: {}.", path_, std::strerror(errno));
  }
}

void MetricsFile::open() {
  fd_ = os::Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_) fail("Metrics file {} cannot be opened: {}.", path_, std::strerror(errno));
}

void MetricsFile::append(const Record& record) {
  std::string line = record.json() + "\n";
  off_t before = ::lseek(fd_.get(), 0, SEEK_END);
  for (std::string_view rest = line; !rest.empty();) {
    ssize_t n = ::write(fd_.get(), rest.data(), rest.size());
    if (n >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      int error = errno;
      bool cut = ::ftruncate(fd_.get(), before) == 0;
      fail("Metrics file {} cannot be written: {}.{}", path_, std::strerror(error),
           cut ? "" : " Its last line is torn; the next start cuts it off.");
    }
  }
}

std::int64_t MetricsFile::last_step() const {
  os::FileMapping map(path_);
  auto text = text_of(map);
  while (!text.empty()) {
    auto start = text.rfind('\n', text.size() - 2);
    start = text.size() < 2 || start == std::string_view::npos ? 0 : start + 1;
    if (auto step = step_of(text.substr(start))) return *step;
    text = text.substr(0, start);
  }
  return -1;
}

void MetricsFile::drop_after(std::int64_t step) {
  os::FileMapping map(path_);
  auto text = text_of(map);
  std::string kept;
  int damaged = 0;
  while (!text.empty()) {
    auto line = take_line(text);
    auto of_line = step_of(line);
    damaged += of_line ? 0 : 1;
    if (of_line && *of_line <= step) kept += line;
  }
  if (damaged > 0) log::warn("Metrics file {} had {} damaged lines; they are left out.", path_, damaged);
  if (kept.size() == map.size) return;
  os::write_file_atomically(path_, kept);
  open();
}

}  // namespace ganymede::metrics
