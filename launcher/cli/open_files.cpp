#include "launcher/cli/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/error.h"

namespace ganymede::cli {
namespace {

constexpr std::uint64_t least = 128;     // RocksDB alone keeps up to 64
constexpr std::uint64_t plenty = 65536;  // there are programs that go through all that could be open
constexpr std::uint64_t a_rank = 16;     // segments in the keeper, pidfds and sockets in the launcher

}  // namespace

std::uint64_t raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) fail("The limit of open files is not known: {}.", std::strerror(errno));
  rlimit raised{std::clamp<rlim_t>(plenty, limit.rlim_cur, limit.rlim_max), limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

void require_open_files(std::uint64_t limit, int ranks) {
  std::uint64_t needed = least + a_rank * static_cast<std::uint64_t>(ranks);
  if (limit < needed)
    fail(
        "Only {} files may be open at once (ulimit -n), and {} rank{} on one node need {}: raise it with `ulimit -n "
        "{}`, or "
        "use fewer parallel.ranks.",
        limit, ranks, ranks == 1 ? "" : "s", needed, needed);
}

}  // namespace ganymede::cli
