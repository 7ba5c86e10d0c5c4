#include "common/optimizer_abi/ganymede_optimizer.h"
#include "services/optimizer/plugins/normuon/normuon_kernel.h"
#include "services/optimizer/plugins/table.h"

namespace {

constexpr GanymedeStateSlot slots[] = {{"momentum", "momentum", GANYMEDE_PER_ELEMENT, 0},
                                       {"row_second_moment", "second_moment", GANYMEDE_PER_ROW, 0}};

using ganymede::plugins::number;
using ganymede::plugins::whole_number;

constexpr GanymedeHyperParameter hyper_parameters[] = {
    number("momentum", "decay of the momentum", 0.95, 0, 0.999999),
    whole_number("nesterov", "1: Nesterov's momentum; 0: the plain one", 1, 0, 1),
    number("beta2", "decay of the second moment of each row", 0.95, 0, 0.999999),
    number("eps", "added to the root of the second moment", 1e-8, 1e-30, 1),
};

bool fits(const GanymedeStep* step) { return step->size >= sizeof(GanymedeStep) && step->hyper_count == 4; }
bool fits(const GanymedeStep* step, const GanymedeChunk* chunk) {
  return fits(step) && chunk->size >= sizeof(GanymedeChunk);
}

int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (!fits(step, chunk) || chunk->slots != 2 || chunk->to_orthogonalise == nullptr) return 1;
  ganymede::normuon::update(*step, *chunk);
  return 0;
}

int apply_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (!fits(step, chunk) || chunk->orthogonal == nullptr) return 1;
  ganymede::normuon::apply(*step, *chunk);
  return 0;
}

int update_matrix(const GanymedeStep* step, const GanymedeMatrix* matrix) {
  if (!fits(step) || matrix->size < sizeof(GanymedeMatrix) || matrix->slots != 2) return 1;
  ganymede::normuon::normalise(*step, *matrix);
  return 0;
}

constexpr GanymedeOptimizer normuon =
    ganymede::plugins::table("normuon", slots, hyper_parameters, update_chunk, apply_chunk, update_matrix);

}  // namespace

extern "C" __attribute__((visibility("default"))) const GanymedeOptimizer* ganymede_optimizer_v1() { return &normuon; }
