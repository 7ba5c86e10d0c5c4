#include "common/optimizer_abi/ganymede_optimizer.h"
#include "services/optimizer/plugins/adamw/adamw_kernel.h"
#include "services/optimizer/plugins/table.h"

namespace {

constexpr GanymedeStateSlot slots[] = {{"first_moment", "momentum", GANYMEDE_PER_ELEMENT, 0},
                                       {"second_moment", "second_moment", GANYMEDE_PER_ELEMENT, 0}};

using ganymede::plugins::number;

constexpr GanymedeHyperParameter hyper_parameters[] = {
    number("beta1", "decay of the first moment", 0.9, 0, 0.999999),
    number("beta2", "decay of the second moment", 0.95, 0, 0.999999999),
    number("eps", "added to the root of the second moment", 1e-8, 1e-30, 1),
};

int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (step->size < sizeof(GanymedeStep) || chunk->size < sizeof(GanymedeChunk)) return 1;
  if (chunk->slots != 2 || step->hyper_count != 3 || step->step == 0) return 2;
  ganymede::adamw::update(*step, *chunk);
  return 0;
}

constexpr GanymedeOptimizer adamw = ganymede::plugins::table("adamw", slots, hyper_parameters, update_chunk);

}  // namespace

extern "C" __attribute__((visibility("default"))) const GanymedeOptimizer* ganymede_optimizer_v1() { return &adamw; }
