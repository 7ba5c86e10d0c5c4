#include "common/optimizer_abi/ganymede_optimizer.h"
#include "services/optimizer/plugins/muon/muon_kernel.h"
#include "services/optimizer/plugins/table.h"

namespace {

constexpr GanymedeStateSlot slots[] = {{"momentum", "momentum", GANYMEDE_PER_ELEMENT, 0}};

using ganymede::plugins::number;
using ganymede::plugins::whole_number;

constexpr GanymedeHyperParameter hyper_parameters[] = {
    number("momentum", "decay of the momentum", 0.95, 0, 0.999999),
    whole_number("nesterov", "1: Nesterov's momentum; 0: the plain one", 1, 0, 1),
    whole_number("scale_rule",
                 "of the step; 0: sqrt(max(1, rows / columns)); 1: 0.2 sqrt(max(rows, columns)), AdamW's RMS", 0, 0, 1),
};

bool fits(const GanymedeStep* step, const GanymedeChunk* chunk) {
  return step->size >= sizeof(GanymedeStep) && chunk->size >= sizeof(GanymedeChunk) && step->hyper_count == 3;
}

int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (!fits(step, chunk) || chunk->slots != 1 || chunk->to_orthogonalise == nullptr) return 1;
  ganymede::muon::update(*step, *chunk);
  return 0;
}

int apply_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (!fits(step, chunk) || chunk->orthogonal == nullptr) return 1;
  ganymede::muon::apply(*step, *chunk);
  return 0;
}

constexpr GanymedeOptimizer muon = ganymede::plugins::table("muon", slots, hyper_parameters, update_chunk, apply_chunk);

}  // namespace

extern "C" __attribute__((visibility("default"))) const GanymedeOptimizer* ganymede_optimizer_v1() { return &muon; }
