#include "common/os/numa.h"

#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/base/threads.h"
#include "common/os/machine.h"

namespace ganymede::os {
namespace {

constexpr std::size_t piece = std::size_t{64} << 20;         // touched in one call
constexpr std::size_t verify_stride = std::size_t{2} << 20;  // one page in each is looked at
constexpr std::size_t most_asked = 4096;                     // pages, for a look
constexpr std::size_t most_threads = 8;                      // more do not zero pages faster on one memory controller

struct NodeMask {
  explicit NodeMask(const std::vector<int>& nodes) : mask(numa_allocate_nodemask()) {
    for (int node : nodes) numa_bitmask_setbit(mask, static_cast<unsigned>(node));
  }
  ~NodeMask() { numa_free_nodemask(mask); }
  NodeMask(const NodeMask&) = delete;
  NodeMask& operator=(const NodeMask&) = delete;
  bitmask* mask;
};

void bind(void* base, std::size_t bytes, const std::vector<int>& nodes) {
  NodeMask mask(nodes);
  int policy = nodes.size() == 1 ? MPOL_BIND : MPOL_INTERLEAVE;
  if (::mbind(base, bytes, policy, mask.mask->maskp, mask.mask->size + 1, 0) == 0) return;
  fail(
      "Shared memory of {} cannot be bound to NUMA node {}: {}. Allow mbind (a container's seccomp profile may forbid "
      "it), or set topology.bind_memory = false.",
      human_bytes(static_cast<double>(bytes)), fmt::join(nodes, ", "), std::strerror(errno));
}

void touch(std::byte* at, std::size_t bytes) {
  while (::madvise(at, bytes, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    fail(
        "This machine has not the memory for {} more of shared memory ({}): close other programs, use more nodes, or a "
        "smaller model.",
        human_bytes(static_cast<double>(bytes)), std::strerror(errno));
  }
}

/// Pieces are handed out one by one, so that a slow thread holds nobody up. The first failure ends all.
class Toucher {
 public:
  Toucher(std::byte* base, std::size_t bytes, const std::vector<int>& cores, const TouchProgress& progress)
      : base_(base), bytes_(bytes), cores_(cores), progress_(progress) {}

  void run() {
    std::size_t pieces = (bytes_ + piece - 1) / piece;
    std::size_t count = std::min({pieces, std::max<std::size_t>(cores_.size(), 1), most_threads});
    auto threads = start_threads(
        static_cast<int>(count), [this](int) { work(); }, [this] { next_ = bytes_; });
    for (auto& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    try {
      if (!cores_.empty()) pin_this_thread(cores_);
      for (std::size_t at = next_.fetch_add(piece); at < bytes_; at = next_.fetch_add(piece)) {
        std::size_t size = std::min(piece, bytes_ - at);
        touch(base_ + at, size);
        progress_(size);
      }
    } catch (...) {
      next_ = bytes_;
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  std::byte* base_;
  std::size_t bytes_;
  const std::vector<int>& cores_;
  const TouchProgress& progress_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

int memory_nodes() { return numa_available() < 0 ? 1 : numa_num_configured_nodes(); }

std::vector<int> nodes_of_cores(const std::vector<int>& cores) {
  if (numa_available() < 0) return {0};
  std::set<int> nodes;
  for (int core : cores) nodes.insert(std::max(numa_node_of_cpu(core), 0));
  return {nodes.begin(), nodes.end()};
}

std::vector<int> nodes_of_memory(int fd, std::size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) fail("Shared memory cannot be mapped: {}.", std::strerror(errno));
  std::size_t stride = std::max(verify_stride, bytes / most_asked / verify_stride * verify_stride);
  std::vector<void*> pages;
  for (std::size_t at = 0; at < bytes; at += stride) {
    pages.push_back(static_cast<std::byte*>(mapped) + at);
    [[maybe_unused]] auto touched = *static_cast<volatile std::byte*>(pages.back());
  }
  std::vector<int> status(pages.size(), -1);
  long failed = ::move_pages(0, pages.size(), pages.data(), nullptr, status.data(), 0);
  ::munmap(mapped, bytes);
  std::set<int> nodes;
  for (int node : status) {
    if (failed >= 0 && node >= 0) nodes.insert(node);
  }
  return {nodes.begin(), nodes.end()};
}

void place_memory(void* base, std::size_t bytes, const std::vector<int>& nodes, const std::vector<int>& cores,
                  const TouchProgress& progress) {
  if (!nodes.empty()) bind(base, bytes, nodes);
  Toucher(static_cast<std::byte*>(base), bytes, cores, progress).run();
}

void verify_placement(const void* base, std::size_t bytes, const std::vector<int>& nodes) {
  // The kernel wants pointers to the pages and only reads where they are.
  auto* first = const_cast<std::byte*>(static_cast<const std::byte*>(base));
  std::vector<void*> pages;
  for (std::size_t at = 0; at < bytes; at += verify_stride) pages.push_back(first + at);
  std::vector<int> status(pages.size(), -1);
  if (::move_pages(0, pages.size(), pages.data(), nullptr, status.data(), 0) < 0) {
    fail("Where shared memory lies cannot be asked: {}. Set topology.bind_memory = false.", std::strerror(errno));
  }
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (std::find(nodes.begin(), nodes.end(), status[i]) != nodes.end()) continue;
    std::string where = status[i] < 0 ? std::strerror(-status[i]) : fmt::format("node {}", status[i]);
    fail("Shared memory at byte {} lies on {}, not on NUMA node {}.", i * verify_stride, where, fmt::join(nodes, ", "));
  }
}

}  // namespace ganymede::os
