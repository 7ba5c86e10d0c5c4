#include "common/optimizer_abi/ganymede_optimizer.h"
#include "services/optimizer/plugins/lion/lion_kernel.h"
#include "services/optimizer/plugins/table.h"

namespace {

constexpr GanymedeStateSlot slots[] = {{"momentum", "momentum", GANYMEDE_PER_ELEMENT, 0}};

using ganymede::plugins::number;

constexpr GanymedeHyperParameter hyper_parameters[] = {
    number("beta1", "share of the momentum in the direction of a step", 0.9, 0, 0.999999999),
    number("beta2", "decay of the momentum", 0.99, 0, 0.999999999),
};

int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (step->size < sizeof(GanymedeStep) || chunk->size < sizeof(GanymedeChunk)) return 1;
  if (chunk->slots != 1 || step->hyper_count != 2) return 2;
  ganymede::lion::update(*step, *chunk);
  return 0;
}

constexpr GanymedeOptimizer lion = ganymede::plugins::table("lion", slots, hyper_parameters, update_chunk);

}  // namespace

extern "C" __attribute__((visibility("default"))) const GanymedeOptimizer* ganymede_optimizer_v1() { return &lion; }
