#include <algorithm>
#include <cmath>

#include "common/optimizer_abi/ganymede_optimizer.h"
#include "services/optimizer/plugins/muon/muon_kernel.h"
#include "services/optimizer/plugins/muon/muon_keys.h"
#include "services/optimizer/plugins/table.h"

namespace {

constexpr GanymedeStateSlot slots[] = {{"momentum", "momentum", GANYMEDE_PER_ELEMENT, 0}};
constexpr const char* reductions[] = {"attention_logit"};

using ganymede::plugins::number;

constexpr GanymedeHyperParameter hyper_parameters[] = {
    ganymede::muon::momentum_key,
    ganymede::muon::nesterov_key,
    ganymede::muon::scale_rule_key,
    number("threshold", "largest attention logit that a query head may have", 100, 1e-6, 1e30),
};
enum { threshold = 3, hyper_parameter_count = 4 };

bool fits(const GanymedeStep* step, const GanymedeChunk* chunk) {
  return step->size >= sizeof(GanymedeStep) && chunk->size >= sizeof(GanymedeChunk) &&
         step->hyper_count == hyper_parameter_count;
}

/// What the logits of a query head are to be multiplied by.
double logit_factor(const GanymedeStep& step, double largest) {
  return largest > step.hyper[threshold] ? step.hyper[threshold] / largest : 1.0;
}

/// What the rows of a head are multiplied by. The keys of a group take the root of its smallest factor and each of its
/// queries the rest, so that the logits of every query head get their own factor.
float row_factor(const GanymedeStep& step, const GanymedeChunk& chunk, std::uint32_t head) {
  const double* largest = chunk.reductions[0];
  const std::uint32_t group = chunk.query_heads / chunk.key_heads;
  const std::uint32_t key = chunk.role == GANYMEDE_KEY ? head : head / group;
  const double highest = *std::max_element(largest + key * group, largest + (key + 1) * group);
  const double of_keys = std::sqrt(logit_factor(step, highest));
  return static_cast<float>(chunk.role == GANYMEDE_KEY ? of_keys : logit_factor(step, largest[head]) / of_keys);
}

/// Multiplies the rows of each head in the chunk.
void clip_heads(const GanymedeStep& step, const GanymedeChunk& chunk) {
  const std::uint64_t of_head = chunk.rows_per_head * chunk.columns, end = chunk.first + chunk.count;
  for (std::uint64_t at = chunk.first; at < end;) {
    const std::uint64_t head = at / of_head, next = std::min(end, (head + 1) * of_head);
    const float factor = row_factor(step, chunk, static_cast<std::uint32_t>(head));
    for (; at < next; at++) chunk.new_master[at - chunk.first] *= factor;
  }
}

int update_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (!fits(step, chunk) || chunk->slots != 1 || chunk->to_orthogonalise == nullptr) return 1;
  ganymede::muon::update(*step, *chunk);
  return 0;
}

int apply_chunk(const GanymedeStep* step, const GanymedeChunk* chunk) {
  if (!fits(step, chunk) || chunk->orthogonal == nullptr) return 1;
  ganymede::muon::apply(*step, *chunk);
  if (chunk->role == 0) return 0;
  if (chunk->reduction_counts[0] != chunk->query_heads) return 2;
  clip_heads(*step, *chunk);
  return 0;
}

constexpr GanymedeOptimizer muonclip = ganymede::plugins::asking(
    ganymede::plugins::table("muonclip", slots, hyper_parameters, update_chunk, apply_chunk), reductions);

}  // namespace

extern "C" __attribute__((visibility("default"))) const GanymedeOptimizer* ganymede_optimizer_v1() { return &muonclip; }
