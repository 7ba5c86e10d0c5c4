#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/os/fd.h"

namespace ganymede::keeper {

/// The shared memory of one node's cells, by name. It lives exactly as long as this object and what is mapped.
class SegmentStore {
 public:
  struct Held {
    os::Fd fd;
    std::uint64_t bytes = 0;
  };
  /// `most_bytes`: of all segments together.
  explicit SegmentStore(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// New zeroed memory whose size can never change, so nobody who maps it can be cut short. The descriptor stays the
  /// store's. Throws Error with the reason of the refusal.
  int create(const std::string& name, std::uint64_t bytes);
  int get(const std::string& name) const;
  void drop(const std::string& name);
  const std::map<std::string, Held>& held() const { return held_; }

 private:
  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::map<std::string, Held> held_;
};

}  // namespace ganymede::keeper
