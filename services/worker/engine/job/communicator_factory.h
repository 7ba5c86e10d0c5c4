#pragma once

#include <memory>
#include <optional>

#include "common/collectives/factory/factory.h"
#include "common/service/service.h"

namespace ganymede::worker {

/// Forms the communicators of one generation as `collectives.backend` says. What this rank publishes for the ranks of
/// its node are its segments `working` and `exchange`. Must outlive the communicators.
class CommunicatorFactory {
 public:
  /// `context` must outlive it. Ends what a former worker of this rank had under way with its peers.
  CommunicatorFactory(service::Context& context, std::uint64_t generation);
  /// Throws CollectiveError.
  std::unique_ptr<collectives::Communicator> make(const collectives::Group& group);

 private:
  std::optional<collectives::Port> port_;
  collectives::Surroundings surroundings_;
};

}  // namespace ganymede::worker
