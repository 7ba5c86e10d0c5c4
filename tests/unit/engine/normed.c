/* Steps along the gradient divided by its norm in the parameter, which its state slot remembers the square of. */
#include "common/optimizer_abi/ganymede_optimizer.h"

#include <math.h>

static int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (chunk->slots != 1 || chunk->reduction_counts[1] != 1) return 1;
  double square = chunk->reductions[1][0];
  float rate = (float)(step->lr / sqrt(square + 1e-30));
  for (uint64_t i = 0; i < chunk->count; i++) {
    chunk->new_state[0][i] = (float)square;
    chunk->new_master[i] = chunk->master[i] - rate * chunk->gradient[i];
  }
  return 0;
}

static const GanymedeStateSlot slots[] = {{"square", "own", GANYMEDE_PER_ELEMENT, 0}};
static const char* const reductions[] = {"attention_logit", "gradient_square"};
static const GanymedeOptimizer table = {.abi = GANYMEDE_OPTIMIZER_ABI,
                                        .size = sizeof(GanymedeOptimizer),
                                        .name = "normed",
                                        .version = "0.1",
                                        .slot_count = 1,
                                        .slot_size = sizeof(GanymedeStateSlot),
                                        .hyper_parameter_size = sizeof(GanymedeHyperParameter),
                                        .slots = slots,
                                        .update_chunk = update_chunk,
                                        .reduction_count = 2,
                                        .reductions = reductions};

const GanymedeOptimizer* ganymede_optimizer_v1(void) { return &table; }
