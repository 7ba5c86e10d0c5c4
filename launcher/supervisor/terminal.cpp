#include "launcher/supervisor/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace ganymede::launcher {
namespace {

constexpr const char* erase_line = "\r\x1b[K";

std::size_t columns(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

constexpr std::string_view between_fields = " | ";
constexpr std::ptrdiff_t fields_kept = 4;  // step, loss, norm, rate of learning

std::ptrdiff_t fields(std::string_view text) {
  std::ptrdiff_t count = 1;
  for (auto at = text.find(between_fields); at != text.npos; at = text.find(between_fields, at + 1)) ++count;
  return count;
}

std::string_view fitted(std::string_view text, std::size_t width) {
  while (text.size() > width && fields(text) > fields_kept) text = text.substr(0, text.rfind(between_fields));
  return text.substr(0, width);
}

}  // namespace

Terminal::Terminal(int fd) : Terminal(fd, isatty(fd) == 1) {}

Terminal::~Terminal() {
  if (!live_.empty()) write("\n");
}

void Terminal::line(std::string_view text) {
  std::string out = live_.empty() ? "" : erase_line;
  out += text;
  out += "\n";
  write(out + live_);
}

void Terminal::live(std::string_view text) {
  if (!interactive_) return;
  live_ = std::string(fitted(text, columns(fd_) - 1));
  write(erase_line + live_);
}

void Terminal::write(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    ssize_t count = ::write(fd_, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
}

}  // namespace ganymede::launcher
