#include "launcher/supervisor/last_metrics.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/base/error.h"
#include "common/metrics/metrics_file.h"

namespace ganymede::launcher {
namespace {

constexpr std::streamoff most_bytes = 1 << 20;

std::optional<LastMetrics> parse(const std::string& line) {
  auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_unsigned()) return std::nullopt;
  constexpr auto most = static_cast<std::uint64_t>(metrics::most_step);
  if (object["step"].get<std::uint64_t>() > most) return std::nullopt;
  LastMetrics last;
  last.step = object["step"].get<std::uint64_t>();
  auto loss = object.find("loss");
  bool known = loss != object.end() && loss->is_number();
  last.loss = known ? loss->get<double>() : std::numeric_limits<double>::quiet_NaN();
  auto count = [&](const char* key, std::uint64_t largest) {
    auto value = object.find(key);
    bool sound = value != object.end() && value->is_number_unsigned();
    return sound ? std::min(value->get<std::uint64_t>(), largest) : 0;
  };
  last.restarts = static_cast<int>(count("restarts", 1'000'000'000));
  last.skips = {.steps = count("skipped_steps", most),
                .non_finite = count("skipped_non_finite", most),
                .loss = count("skipped_loss", most),
                .grad_norm = count("skipped_grad_norm", most),
                .listed = count("skipped_listed", most)};
  return last;
}

}  // namespace

std::optional<LastMetrics> read_last_metrics(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - most_bytes));
  std::optional<LastMetrics> last;
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // torn: it has no line end
    if (auto parsed = parse(line)) last = parsed;
  }
  return last;
}

std::string set_aside_older_metrics(const std::string& path, const MetricsOrigin& origin) {
  bool goes_on = origin.load_step > 0 && !origin.load_from_other;
  if (goes_on || origin.decided > origin.load_step) return "";  // a launcher before this one began with an empty file
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";  // what cannot be written to is refused when it is
  std::ifstream file(path, std::ios::binary);
  auto lines = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  if (lines == 0) return "";
  std::string old = path + ".old";
  if (std::rename(path.c_str(), old.c_str()) != 0)
    fail("Metrics file {} cannot be moved to {}: {}.", path, old, std::strerror(errno));
  return fmt::format("{}: the {} line{} of an earlier attempt, which left no checkpoint, {} now in {}", path, lines,
                     lines == 1 ? "" : "s", lines == 1 ? "is" : "are", old);
}

}  // namespace ganymede::launcher
