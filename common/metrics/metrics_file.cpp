#include "common/metrics/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

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
  if (step == object.end() || !step->is_number_unsigned()) return std::nullopt;
  if (step->get<std::uint64_t>() > static_cast<std::uint64_t>(most_step)) return std::nullopt;
  return step->get<std::int64_t>();
}

/// Takes the first line off `text`, which ends with a line end. NUL bytes before it, where blocks of the file were lost
/// with the machine, do not belong to it.
std::string_view take_line(std::string_view& text) {
  auto end = text.find('\n') + 1;
  auto line = text.substr(0, end);
  text.remove_prefix(end);
  return line.substr(line.find_first_not_of('\0'));
}

struct Line {
  std::size_t number = 0;  // in the file, from 1 on
  std::string_view text;
  std::int64_t step = 0;
};

/// The most lines whose steps grow from one to the next: a line with a wrong step costs itself alone.
std::vector<Line> in_order(const std::vector<Line>& lines) {
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> ends;  // [i]: the line with the least step that ends a growing series of i + 1 lines
  std::vector<std::size_t> before(lines.size(), none);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto place = std::lower_bound(ends.begin(), ends.end(), lines[i].step,
                                  [&](std::size_t end, std::int64_t step) { return lines[end].step < step; });
    if (place != ends.begin()) before[i] = *(place - 1);
    if (place == ends.end()) {
      ends.push_back(i);
    } else if (lines[i].step < lines[*place].step) {  // of a doubled line the first one stays
      *place = i;
    }
  }
  std::vector<Line> kept;
  for (std::size_t i = ends.empty() ? none : ends.back(); i != none; i = before[i]) kept.push_back(lines[i]);
  std::reverse(kept.begin(), kept.end());
  return kept;
}

/// "line 3 is", "lines 3, 5, 8 are", "lines 1, 2, 3, 4, 5 and 7 more are".
std::string subject(const std::vector<std::size_t>& numbers) {
  constexpr std::size_t most_named = 5;
  std::string list;
  for (std::size_t i = 0; i < std::min(numbers.size(), most_named); ++i)
    list += fmt::format("{}{}", i == 0 ? "" : ", ", numbers[i]);
  if (numbers.size() > most_named) list += fmt::format(" and {} more", numbers.size() - most_named);
  return numbers.size() == 1 ? fmt::format("line {} is", list) : fmt::format("lines {} are", list);
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path) : path_(path) {
  open();
  mend_end();
}

void MetricsFile::mend_end() {
  os::FileMapping map(path_);
  auto text = text_of(map);
  auto whole = text.rfind('\n') + 1;  // 0 when there is no line end: npos + 1
  if (whole == text.size()) return;
  auto last = text.substr(whole);
  last.remove_prefix(std::min(last.find_first_not_of('\0'), last.size()));
  bool lacks_its_end_alone = step_of(last).has_value();
  if (lacks_its_end_alone && ::write(fd_.get(), "\n", 1) == 1) return;
  torn_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  if (::ftruncate(fd_.get(), static_cast<off_t>(whole)) != 0) {
    fail("Metrics file {} cannot be shortened: {}.", path_, std::strerror(errno));
  }
}

void MetricsFile::open() { fd_ = os::open_for_append(path_); }

/// What was removed under the run would be written to where nobody finds it.
void MetricsFile::begin_again_if_removed() {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0 || status.st_nlink > 0) return;
  log::warn("{} was removed while the run goes on: it is begun again.", path_);
  open();
}

void MetricsFile::append(const Record& record) {
  begin_again_if_removed();
  std::string line = record.json() + "\n";
  off_t before = ::lseek(fd_.get(), 0, SEEK_END);
  for (std::string_view rest = line; !rest.empty();) {
    ssize_t n = ::write(fd_.get(), rest.data(), rest.size());
    if (n >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      int error = errno;
      bool cut = ::ftruncate(fd_.get(), before) == 0;
      std::error_code unknown;
      bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
      fail("Metrics file {} cannot be written: {}.{} {}.", std::filesystem::absolute(path_, unknown).string(),
           std::strerror(error), cut ? "" : " Its last line is torn; the next start cuts it off.",
           full ? "Make room on its disk" : "Look at its disk");
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

std::string MetricsFile::drop_after(std::int64_t step) {
  os::FileMapping map(path_);
  auto text = text_of(map);
  std::vector<Line> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    auto line = take_line(text);
    ++number;
    if (auto of_line = step_of(line)) lines.push_back({number, line, *of_line});
  }
  std::vector<Line> good = in_order(lines);
  std::vector<std::size_t> damaged;
  std::string kept;
  std::size_t next = 1;  // line that should come
  for (const Line& line : good) {
    for (; next < line.number; ++next) damaged.push_back(next);
    ++next;
    if (line.step <= step) kept += line.text;
  }
  for (; next <= number; ++next) damaged.push_back(next);
  if (std::exchange(torn_, 0) > 0) damaged.push_back(number + 1);
  if (kept.size() != map.size) {
    os::write_file_atomically(path_, kept);
    open();
  }
  if (damaged.empty()) return "";
  std::string warning = fmt::format("Metrics file {}: {} damaged and left out.", path_, subject(damaged));
  log::warn("{}", warning);
  return warning;
}

}  // namespace ganymede::metrics
