/* A plugin with one slot that nobody else has, and one fault: in its first update of more than FROM_COUNT elements
   (IN_UPDATE), when it is loaded (WHEN_LOADED), or its ABI. */
#include "common/optimizer_abi/ganymede_optimizer.h"

#include <stdlib.h>
#include <unistd.h>

void fault_when_loaded(void);

__attribute__((constructor)) void fault_when_loaded(void) { WHEN_LOADED; }

static int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  (void)step;
  if (chunk->count > FROM_COUNT) IN_UPDATE;
  for (uint64_t i = 0; i < chunk->count; ++i) {
    chunk->new_master[i] = chunk->master[i];
    chunk->new_state[0][i] = chunk->state[0][i];
  }
  return 0;
}

static const GanymedeStateSlot slots[] = {{"own", "own", GANYMEDE_PER_ELEMENT, 0}};
static const GanymedeOptimizer table = {.abi = FOLLOWER_ABI,
                                        .size = sizeof(GanymedeOptimizer),
                                        .name = "follower",
                                        .version = "0.1",
                                        .slot_count = 1,
                                        .slot_size = sizeof(GanymedeStateSlot),
                                        .hyper_parameter_size = sizeof(GanymedeHyperParameter),
                                        .slots = slots,
                                        .update_chunk = update_chunk};

const GanymedeOptimizer* ganymede_optimizer_v1(void) { return &table; }
