#include <algorithm>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "tests/unit/engine/two_ranks.h"

/// A rank whose worker was killed between the vote and its decision takes what the others decided, with all of it.
namespace ganymede::worker {
namespace {

/// Takes the decision of step 3 back on rank 1, with what was written before it.
void undo_decision(TwoRanks& ranks) {
  auto& behind = ranks.world.cell(1);
  behind.control().block->decided_step = 2;
  behind.epoch().words->chunks_done = 2 * behind.placement().chunks.size();
  behind.control().block->record_of(3) = {};
  std::ranges::fill(behind.epoch().reductions, 0);
}

std::vector<placement::OptimizerFacts> asking_facts() {
  auto facts = builtin_facts();
  facts[0].reductions = {"attention_logit", "gradient_square"};
  return facts;
}

TEST(Adoption, ARankThatMissedTheDecisionAdoptsItsReductions) {
  TwoRanks ranks(3, asking_facts());
  undo_decision(ranks);
  EXPECT_EQ(ranks.exchange_both().step, 4u);
  auto known = ranks.world.cell(0).epoch().reductions, adopted = ranks.world.cell(1).epoch().reductions;
  EXPECT_GT(known.size(), 10u);
  EXPECT_TRUE(std::ranges::equal(known, adopted));
  EXPECT_EQ(ranks.world.cell(1).control().block->record_of(3).reductions_hash, hash64(std::as_bytes(adopted)));
}

TEST(Adoption, ReductionsThatAreNotTheRecordsAreNotAdopted) {
  TwoRanks ranks(3, asking_facts());
  undo_decision(ranks);
  ranks.world.cell(0).epoch().reductions[1] += 1;
  try {
    ranks.exchange_both();
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("reductions of step 3 were damaged"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ganymede::worker
