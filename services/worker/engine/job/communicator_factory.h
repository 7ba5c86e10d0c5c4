#pragma once

#include <memory>
#include <optional>

#include "common/collectives/factory/factory.h"
#include "common/service/service.h"
#include "services/worker/engine/job/communicator_source.h"

namespace ganymede::worker {

/// Forms the communicators of one generation as `collectives.backend` says. What this rank publishes for the ranks of
/// its node are its segments `exchange`, `working` and the pool of its state epoch. Must outlive the communicators.
class CommunicatorFactory final : public CommunicatorSource {
 public:
  /// `context` must outlive it. Ends what a former worker of this rank had under way with its peers.
  CommunicatorFactory(service::Context& context, std::uint64_t generation);
  std::unique_ptr<collectives::Communicator> make_control(const collectives::Group& group) override;
  void publish(std::uint64_t epoch) override;
  std::unique_ptr<collectives::Communicator> make(const collectives::Group& group) override;

 private:
  service::Context& context_;
  std::optional<collectives::Port> control_port_, port_;
  collectives::Surroundings surroundings_;
};

}  // namespace ganymede::worker
