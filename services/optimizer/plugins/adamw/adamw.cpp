#include "common/optimizer_abi/ganymede_optimizer.h"
#include "services/optimizer/plugins/adamw/adamw_kernel.h"

namespace {

constexpr GanymedeStateSlot slots[] = {{"first_moment", "momentum"}, {"second_moment", "second_moment"}};

constexpr GanymedeHyperParameter hyper_parameters[] = {
    {"lr", 1e-3, 0, 1e3},    {"beta1", 0.9, 0, 0.999999},   {"beta2", 0.95, 0, 0.999999999},
    {"eps", 1e-8, 1e-30, 1}, {"weight_decay", 0.1, 0, 1e3},
};

int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (step->size < sizeof(GanymedeStep) || chunk->size < sizeof(GanymedeChunk)) return 1;
  if (chunk->slots != 2 || step->step == 0) return 2;
  ganymede::adamw::update(*step, *chunk);
  return 0;
}

constexpr GanymedeOptimizer adamw = {
    GANYMEDE_OPTIMIZER_ABI,
    sizeof(GanymedeOptimizer),
    "adamw",
    "1.0",
    sizeof(slots) / sizeof(slots[0]),
    sizeof(hyper_parameters) / sizeof(hyper_parameters[0]),
    slots,
    hyper_parameters,
    update_chunk,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const GanymedeOptimizer* ganymede_optimizer_v1() { return &adamw; }
