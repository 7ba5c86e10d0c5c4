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

/// A port that publishes these segments besides "exchange", with some of its channels.
collectives::Port::Spec published(service::Context& context, std::vector<std::string> segments, int first_channel,
                                  int channels) {
  segments.insert(segments.begin(), "exchange");
  collectives::Port::Spec spec;
  spec.rank = context.rank();
  for (const std::string& name : segments) {
    shm::Segment& segment = context.segment(name);
    spec.regions.push_back({name, segment.base(), static_cast<std::size_t>(segment.layout().size)});
  }
  spec.channels_region = 0;
  spec.channels = channels;
  spec.channels_memory = context.segment("exchange")
                             .span<std::byte>("channels")
                             .subspan(static_cast<std::size_t>(first_channel * shm::collective_channel_bytes),
                                      static_cast<std::size_t>(channels * shm::collective_channel_bytes));
  spec.peers = std::make_shared<collectives::KeeperMemory>(shm::KeeperClient(), segments, context.job());
  return spec;
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

CommunicatorFactory::CommunicatorFactory(service::Context& context, std::uint64_t generation) : context_(context) {
  const config::Config& config = context.config();
  if (plan::pool_is_published(config)) control_port_.emplace(published(context, {}, 0, 1));
  surroundings_.backend = backend_of(config.collectives.backend);
  surroundings_.ranks_per_node = config.topology.ranks_per_node;
  surroundings_.store = std::make_shared<LauncherStore>(context, generation);
  surroundings_.interface = service::read_job().interface;
}

std::unique_ptr<collectives::Communicator> CommunicatorFactory::make_control(const collectives::Group& group) {
  surroundings_.port = control_port_ ? &*control_port_ : nullptr;
  return collectives::make_communicator(group, surroundings_);
}

void CommunicatorFactory::publish(std::uint64_t epoch) {
  port_.reset();
  if (plan::pool_is_published(context_.config()))
    port_.emplace(published(context_, {"working", shm::pool_name(epoch)}, 1, shm::collective_channels - 1));
}

std::unique_ptr<collectives::Communicator> CommunicatorFactory::make(const collectives::Group& group) {
  surroundings_.port = port_ ? &*port_ : nullptr;
  return collectives::make_communicator(group, surroundings_);
}

}  // namespace ganymede::worker
