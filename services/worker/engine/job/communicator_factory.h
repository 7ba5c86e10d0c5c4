#pragma once

#include <memory>
#include <optional>

#include "common/collectives/factory/factory.h"
#include "common/service/service.h"

namespace ganymede::worker {

/// Forms the communicators of one generation as `collectives.backend` says. What this rank publishes for the ranks of
/// its node are its segments `exchange`, `working` and the pool of its state epoch. Must outlive the communicators.
class CommunicatorFactory {
 public:
  /// `context` must outlive it. Ends what a former worker of this rank had under way with its peers.
  CommunicatorFactory(service::Context& context, std::uint64_t generation);
  /// Of all ranks, whatever their epoch: nothing but channels is published for it. Throws CollectiveError.
  std::unique_ptr<collectives::Communicator> make_control(const collectives::Group& group);
  /// Publishes the pool of an epoch for those that `make` forms; there are none yet, or no more.
  void publish(std::uint64_t epoch);
  /// Throws CollectiveError.
  std::unique_ptr<collectives::Communicator> make(const collectives::Group& group);

 private:
  service::Context& context_;
  std::optional<collectives::Port> control_port_, port_;
  collectives::Surroundings surroundings_;
};

}  // namespace ganymede::worker
