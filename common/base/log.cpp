#include "common/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>

#include "common/base/error.h"

namespace ganymede::log {
namespace {

constexpr std::size_t kept_lines = 64;

spdlog::level::level_enum to_spdlog(Level level) {
  static constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                         spdlog::level::err};
  return levels[static_cast<int>(level)];
}

struct Journal {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger;
  std::deque<std::string> last;

  Journal() { use("ganymede", {std::make_shared<spdlog::sinks::stderr_sink_mt>()}, Level::info); }

  void use(const std::string& name, spdlog::sinks_init_list sinks, Level lowest) {
    logger = std::make_shared<spdlog::logger>(name, sinks);
    logger->set_level(to_spdlog(lowest));
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %n: %v");
    // A killed process has written every line that it logged; lines are few.
    logger->flush_on(spdlog::level::trace);
    // On a full disk a line is lost; what fails for the same reason has its own message.
    logger->set_error_handler([](const std::string&) {});
  }
};

/// Never destroyed: threads may log while the process ends.
Journal& journal() {
  static auto* the_journal = new Journal;
  return *the_journal;
}

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  for (char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

void start(const std::string& name, const std::string& file, bool echo, Level lowest) {
  auto& j = journal();
  std::lock_guard lock(j.mutex);
  std::error_code ignored;
  if (std::filesystem::is_fifo(file, ignored)) fail("Log file {} is a pipe: remove it.", file);
  try {
    auto to_file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    if (!echo) return j.use(name, {to_file}, lowest);
    auto to_stderr = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    j.use(name, {to_file, to_stderr}, lowest);
    to_stderr->set_level(spdlog::level::warn);
    to_stderr->set_pattern("%n: %v");
  } catch (const spdlog::spdlog_ex& e) {
    fail("Log file {} cannot be opened ({}): check that its folder exists and can be written.", file, e.what());
  }
}

void flush() {
  auto& j = journal();
  std::lock_guard lock(j.mutex);
  j.logger->flush();
}

void write(Level level, std::string_view text) {
  auto& j = journal();
  std::string line = one_line(text);
  std::lock_guard lock(j.mutex);
  if (!j.logger->should_log(to_spdlog(level))) return;
  j.logger->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
  j.last.push_back(std::move(line));
  if (j.last.size() > kept_lines) j.last.pop_front();
}

std::vector<std::string> last_lines(int count) {
  auto& j = journal();
  std::lock_guard lock(j.mutex);
  auto wanted = static_cast<std::size_t>(count < 0 ? 0 : count);
  std::size_t skip = j.last.size() > wanted ? j.last.size() - wanted : 0;
  return {j.last.begin() + static_cast<std::ptrdiff_t>(skip), j.last.end()};
}

}  // namespace ganymede::log
