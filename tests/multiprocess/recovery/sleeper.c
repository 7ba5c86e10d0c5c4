/* A plugin that, once told to by a file in the run directory, goes to sleep in an update, or computes for ever. */
#include "common/optimizer_abi/ganymede_optimizer.h"

#include <unistd.h>

static int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (unlink("sleep") == 0)
    while (1) pause();
  if (unlink("spin") == 0)
    for (volatile int forever = 1; forever;) continue;
  for (uint64_t i = 0; i < chunk->count; ++i) {
    chunk->new_master[i] = chunk->master[i] - (float)step->lr * chunk->gradient[i] * (float)step->gradient_scale;
    chunk->new_state[0][i] = chunk->state[0][i];
  }
  return 0;
}

static const GanymedeStateSlot slots[] = {{"own", "own", GANYMEDE_PER_ELEMENT, 0}};
static const GanymedeOptimizer table = {.abi = GANYMEDE_OPTIMIZER_ABI,
                                        .size = sizeof(GanymedeOptimizer),
                                        .name = "sleeper",
                                        .version = "0.1",
                                        .slot_count = 1,
                                        .slot_size = sizeof(GanymedeStateSlot),
                                        .hyper_parameter_size = sizeof(GanymedeHyperParameter),
                                        .slots = slots,
                                        .update_chunk = update_chunk};

const GanymedeOptimizer* ganymede_optimizer_v1(void) { return &table; }
