#include "common/optimizer_abi/ganymede_optimizer.h"
#include "services/optimizer/plugins/sgd/sgd_kernel.h"
#include "services/optimizer/plugins/table.h"

namespace {

constexpr GanymedeStateSlot slots[] = {{"momentum", "gradient_sum", GANYMEDE_PER_ELEMENT, 0}};

using ganymede::plugins::number;
using ganymede::plugins::whole_number;

constexpr GanymedeHyperParameter hyper_parameters[] = {
    number("momentum", "decay of the momentum; 0: plain gradient descent", 0.9, 0, 0.999999999),
    number("dampening", "the momentum takes 1 minus this of a gradient", 0, 0, 1),
    whole_number("nesterov", "1: a step looks ahead along the momentum; 0: it does not", 0, 0, 1),
};

int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (step->size < sizeof(GanymedeStep) || chunk->size < sizeof(GanymedeChunk)) return 1;
  if (chunk->slots != 1 || step->hyper_count != 3 || step->step == 0) return 2;
  ganymede::sgd::update(*step, *chunk);
  return 0;
}

constexpr GanymedeOptimizer sgd = ganymede::plugins::table("sgd", slots, hyper_parameters, update_chunk);

}  // namespace

extern "C" __attribute__((visibility("default"))) const GanymedeOptimizer* ganymede_optimizer_v1() { return &sgd; }
