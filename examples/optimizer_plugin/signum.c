/* Signum (Bernstein et al., "signSGD", 2018): steps along the sign of the momentum. */
#include <ganymede_optimizer.h>
#include <stddef.h>

static const GanymedeStateSlot slots[] = {{"momentum", "momentum", GANYMEDE_PER_ELEMENT, 0}};

enum { beta, hyper_parameter_count };
static const GanymedeHyperParameter hyper_parameters[] = {{"beta", "decay of the momentum", 0.9, 0.0, 0.999999, 0, 0}};

static float sign(float value) { return (float)((value > 0) - (value < 0)); }

/* Inputs are read only: after a kill the same call comes again with the same inputs and has to give the same bits. */
static int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (step->size < sizeof *step || chunk->size < sizeof *chunk) return 1;
  if (chunk->slots != 1 || step->hyper_count != hyper_parameter_count) return 2;
  const float scale = (float)step->gradient_scale, lr = (float)step->lr, kept = (float)step->hyper[beta];
  const float decay = chunk->decayed ? (float)(1 - step->lr * step->weight_decay) : 1.0f;
  const float *gradient = chunk->gradient, *master = chunk->master, *momentum = chunk->state[0];
  float *new_master = chunk->new_master, *new_momentum = chunk->new_state[0];
  for (uint64_t i = 0; i < chunk->count; i++) {
    new_momentum[i] = kept * momentum[i] + (1 - kept) * (gradient[i] * scale);
    new_master[i] = master[i] * decay - lr * sign(new_momentum[i]);
  }
  return 0;
}

static const GanymedeOptimizer table = {
    GANYMEDE_OPTIMIZER_ABI,
    sizeof(GanymedeOptimizer),
    "signum",
    "1.0",
    1,
    sizeof(GanymedeStateSlot),
    hyper_parameter_count,
    sizeof(GanymedeHyperParameter),
    slots,
    hyper_parameters,
    update_chunk,
    NULL, /* apply_chunk: updates any elements, not whole matrices */
    NULL, /* update_matrix */
    0,
    NULL, /* reductions: it needs to know nothing of the whole step */
};

__attribute__((visibility("default"))) const GanymedeOptimizer* ganymede_optimizer_v1(void) { return &table; }
