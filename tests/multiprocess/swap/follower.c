/* A plugin with one slot that nobody else has: it crashes in its first update, or has another ABI. */
#include "common/optimizer_abi/ganymede_optimizer.h"

#include <stdlib.h>

static int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  (void)step;
  if (chunk->count > 0) abort();
  return 0;
}

static const GanymedeStateSlot slots[] = {{"own", "own"}};
static const GanymedeOptimizer table = {FOLLOWER_ABI,
                                        sizeof(GanymedeOptimizer),
                                        "follower",
                                        "0.1",
                                        1,
                                        sizeof(GanymedeStateSlot),
                                        0,
                                        sizeof(GanymedeHyperParameter),
                                        slots,
                                        0,
                                        update_chunk,
                                        0};

const GanymedeOptimizer* ganymede_optimizer_v1(void) { return &table; }
