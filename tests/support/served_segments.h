#pragma once

#include <poll.h>

#include <atomic>
#include <string>
#include <thread>

#include "launcher/keeper/segment_server.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::test {

/// A keeper's segments, served on a socket of its own by a thread of the test. Tests that use it link `keeper`.
class ServedSegments {
 public:
  explicit ServedSegments(std::uint64_t most_bytes) : store_(most_bytes) {}
  ~ServedSegments() {
    stopping_ = true;
    thread_.join();
  }
  ServedSegments(const ServedSegments&) = delete;
  ServedSegments& operator=(const ServedSegments&) = delete;

  const std::string& path() const { return path_; }  // of the socket

 private:
  void serve() {
    while (!stopping_) {
      pollfd ready{server_.fd(), POLLIN, 0};
      ::poll(&ready, 1, 20);
      server_.serve();
    }
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/keeper.sock";
  keeper::SegmentStore store_;
  keeper::SegmentServer server_{path_, store_};
  std::atomic<bool> stopping_ = false;
  std::thread thread_{[this] { serve(); }};  // last: it uses all of the above
};

}  // namespace ganymede::test
