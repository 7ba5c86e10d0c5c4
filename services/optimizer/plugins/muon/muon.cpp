#include "common/optimizer_abi/ganymede_optimizer.h"
#include "services/optimizer/plugins/muon/muon_kernel.h"
#include "services/optimizer/plugins/muon/muon_keys.h"
#include "services/optimizer/plugins/table.h"

namespace {

constexpr GanymedeStateSlot slots[] = {{"momentum", "momentum", GANYMEDE_PER_ELEMENT, 0}};

constexpr GanymedeHyperParameter hyper_parameters[] = {
    ganymede::muon::momentum_key,
    ganymede::muon::nesterov_key,
    ganymede::muon::scale_rule_key,
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
