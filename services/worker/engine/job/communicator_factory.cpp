#include "services/worker/engine/job/communicator_factory.h"

#include "common/base/error.h"
#include "common/cell/exchange_layout.h"
#include "common/collectives/shm/keeper_memory.h"
#include "common/plan/pool.h"
#include "common/service/run_directory.h"
#include "services/worker/engine/job/launcher_store.h"

namespace ganymede::worker {
namespace {

using collectives::Backend;

collectives::Port::Spec published(service::Context& context) {
  shm::Segment& working = context.segment("working");
  shm::Segment& exchange = context.segment("exchange");
  auto region = [](const shm::Segment& segment) {
    return collectives::Region{segment.layout().name, segment.base(), static_cast<std::size_t>(segment.layout().size)};
  };
  auto peers = std::make_shared<collectives::KeeperMemory>(
      shm::KeeperClient(), std::vector<std::string>{"working", "exchange"}, context.job());
  return {.rank = context.rank(),
          .regions = {region(working), region(exchange)},
          .channels_region = 1,
          .channels_memory = exchange.span<std::byte>("channels"),
          .channels = shm::collective_channels,
          .peers = peers};
}

Backend backend_of(config::CollectiveBackend backend) {
  switch (backend) {
    case config::CollectiveBackend::automatic:
      return Backend::automatic;
    case config::CollectiveBackend::shm:
      return Backend::shm;
    case config::CollectiveBackend::gloo:
      return Backend::gloo;
  }
  impossible(__FILE__, __LINE__, "a backend that does not exist");
}

}  // namespace

CommunicatorFactory::CommunicatorFactory(service::Context& context, std::uint64_t generation) {
  const config::Config& config = context.config();
  if (plan::pool_is_published(config)) port_.emplace(published(context));
  surroundings_.backend = backend_of(config.collectives.backend);
  surroundings_.ranks_per_node = config.topology.ranks_per_node;
  surroundings_.port = port_ ? &*port_ : nullptr;
  surroundings_.store = std::make_shared<LauncherStore>(context, generation);
  surroundings_.interface = service::read_job().interface;
}

std::unique_ptr<collectives::Communicator> CommunicatorFactory::make(const collectives::Group& group) {
  return collectives::make_communicator(group, surroundings_);
}

}  // namespace ganymede::worker
