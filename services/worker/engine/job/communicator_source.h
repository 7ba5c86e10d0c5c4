#pragma once

#include <cstdint>
#include <memory>

#include "common/collectives/collectives.h"

namespace ganymede::worker {

/// Forms the communicators of one generation. Must outlive them.
class CommunicatorSource {
 public:
  virtual ~CommunicatorSource() = default;
  /// Of all ranks, whatever their state epoch. Throws CollectiveError.
  virtual std::unique_ptr<collectives::Communicator> make_control(const collectives::Group& group) = 0;
  /// Gets ready for those of an epoch, which `make` forms; there are none yet, or no more.
  virtual void publish(std::uint64_t epoch) = 0;
  /// Throws CollectiveError.
  virtual std::unique_ptr<collectives::Communicator> make(const collectives::Group& group) = 0;
};

}  // namespace ganymede::worker
