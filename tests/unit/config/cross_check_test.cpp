#include "tests/unit/config/recipe_file.h"

namespace ganymede::config {
namespace {

using CrossCheck = RecipeFile;

struct Case {
  std::string text;
  std::string error;
};

TEST_F(CrossCheck, KeysThatDoNotGoTogetherAreNamed) {
  const Case cases[] = {
      {"model.heads = 6\nmodel.kv_heads_global = 4",
       "recipe.toml:2: key 'model.kv_heads_global' is 4, which does not divide 'model.heads' = 6; the nearest that "
       "does is 3."},
      {"model.kv_heads_sliding = 3",
       "recipe.toml:1: key 'model.kv_heads_sliding' is 3, which does not divide 'model.heads' = 4; the nearest that "
       "does is 2."},
      {"model.top_k = 9", "recipe.toml:1: key 'model.top_k' is 9, more than the 8 experts of a layer."},
      {"model.router_groups = 3",
       "recipe.toml:1: key 'model.router_groups' is 3, which does not divide 'model.experts' = 8; the nearest that "
       "does "
       "is 2."},
      {"model.router_groups = 4\nmodel.top_k = 2",
       "recipe.toml:1: key 'model.router_groups' is 4, which does not divide 'model.top_k' = 2; the nearest that does "
       "is 2."},
      {"model.router_groups = 2\nmodel.experts = 0",
       "recipe.toml:1: key 'model.router_groups' is 2, but the model has no experts: leave it at 1."},
      {"model.dense_layers = 3", "recipe.toml:1: key 'model.dense_layers' is 3, more than the 2 layers of the model."},
      {"model.qk_dim = 4",
       "recipe.toml: key 'model.rotary_fraction' is 0.334, which rotates no pair of the 4 dimensions of a head; make "
       "it "
       "0 for none, or at least 2 / model.qk_dim."},
      {"optimizer.schedule = \"wsd\"\noptimizer.warmup_steps = 60\noptimizer.decay_steps = 50",
       "recipe.toml:2: key 'optimizer.warmup_steps' is 60 and 'optimizer.decay_steps' 50: together more than the 100 "
       "steps of the run (run.steps)."},
      {"optimizer.warmup_steps = 200",
       "recipe.toml:1: key 'optimizer.warmup_steps' is 200, more than the 100 steps of the schedule (run.steps)."},
      {"optimizer.decay_steps = 5",
       "recipe.toml: key 'optimizer.warmup_steps' is 10, more than the 5 steps of the schedule "
       "(optimizer.decay_steps)."},
      {"run.name = \"a/b\"",
       "recipe.toml:1: key 'run.name' is \"a/b\", which is not a name: no '/', no '.' at its start, no line ends or "
       "other control characters, not empty."},
      {"run.name = \"a\\nb\"",
       "recipe.toml:1: key 'run.name' is \"a\\u000ab\", which is not a name: no '/', no '.' at its start, no line ends "
       "or "
       "other control characters, not empty."},
      {"optimizer.name = \"../x\"",
       "recipe.toml:1: key 'optimizer.name' is \"../x\", which is not a name: no '/', no '.' at its start, no line "
       "ends or other control characters, not empty."},
      {"run.skip_steps = [\"7\", \"9-8\"]",
       "recipe.toml:1: key 'run.skip_steps' has \"9-8\", which is neither a step such as \"400\" nor steps such as "
       "\"120-135\", from 1 on and the smaller first."},
      {"run.skip_steps = [\"0\"]",
       "recipe.toml:1: key 'run.skip_steps' has \"0\", which is neither a step such as \"400\" nor steps such as "
       "\"120-135\", from 1 on and the smaller first."},
      {"model.vocabulary = 100",
       "recipe.toml:1: key 'model.vocabulary' is 100, but the tokenizer \"bytes\" has 256 tokens."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
}

TEST_F(CrossCheck, WorldsThatDoNotComeOutEvenAreNamed) {
  const Case cases[] = {
      {"parallel.replicas = 2\nparallel.ranks = 3",
       "recipe.toml:1: key 'parallel.replicas' is 2; times parallel.expert_group = 1 it has to divide 'parallel.ranks' "
       "= 3: the nearest number of ranks that fits is 2."},
      {"parallel.replicas = 2\nparallel.ranks = 6\nparallel.expert_group = 2",
       "recipe.toml:1: key 'parallel.replicas' is 2; times parallel.expert_group = 2 it has to divide 'parallel.ranks' "
       "= 6: the nearest number of ranks that fits is 4."},
      {"parallel.ranks = 4\nparallel.expert_group = 3",
       "recipe.toml:2: key 'parallel.expert_group' is 3, which does not divide 'parallel.ranks' = 4; the nearest that "
       "does is 2."},
      {"parallel.ranks = 9\nparallel.expert_group = 9\ndata.rows_per_step = 9",
       "recipe.toml:2: key 'parallel.expert_group' is 9, more than the 8 experts of a layer; make it 8 or less."},
      {"parallel.ranks = 4\nparallel.expert_group = 4\ntopology.ranks_per_node = 2",
       "recipe.toml:2: key 'parallel.expert_group' is 4, which does not divide 'topology.ranks_per_node' = 2; the "
       "nearest that does is 2."},
      {"parallel.ranks = 4\ntopology.ranks_per_node = 2\ncollectives.backend = \"shm\"",
       "recipe.toml:3: key 'collectives.backend' is \"shm\", but topology.ranks_per_node = 2 puts the 4 ranks on "
       "several "
       "nodes, which share no memory: make it \"auto\"."},
      {"parallel.ranks = 2\nparallel.expert_group = 2\nmodel.experts = 0",
       "recipe.toml:2: key 'parallel.expert_group' is 2, but the model has no experts: leave it at 1."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
}

TEST_F(CrossCheck, FormatsAndTokenizersThatDoNotFitAreNamed) {
  const Case cases[] = {
      {"compute.dtype = \"bf16\"",
       "recipe.toml:1: key 'compute.dtype' is \"bf16\", but wire.dense_gather and wire.expert_gather are \"fp32\": set "
       "both to \"bf16\" as well (or wire.expert_gather to \"fp8\")."},
      {"wire.dense_gather = \"bf16\"",
       "recipe.toml:1: key 'wire.dense_gather' is \"bf16\", but compute.dtype is \"fp32\"; they have to be the same."},
      {"compute.dtype = \"bf16\"\nwire.dense_gather = \"bf16\"",
       "recipe.toml: key 'wire.expert_gather' is \"fp32\", but compute.dtype is \"bf16\"; they have to be the same, or "
       "this one \"fp8\"."},
      {"wire.expert_gather = \"bf16\"",
       "recipe.toml:1: key 'wire.expert_gather' is \"bf16\", but compute.dtype is \"fp32\"; they have to be the same, "
       "or this one \"fp8\"."},
      {"wire.dense_gather = \"fp8\"",
       "recipe.toml:1: key 'wire.dense_gather' is \"fp8\", but has to be one of \"fp32\", \"bf16\"."},
      {"wire.gather = \"bf16\"",
       "recipe.toml:1: key 'wire.gather' is not known; 'wire.dense_gather' and 'wire.expert_gather' have replaced it."},
      {"data.tokenizer = \"train:lots\"",
       "recipe.toml:1: key 'data.tokenizer' is \"train:lots\"; after 'train:' comes the size of the vocabulary, 300 to "
       "1000000."},
      {"data.tokenizer = \"train:512\"",
       "recipe.toml: key 'model.vocabulary' is 256, but data.tokenizer = \"train:512\" makes 512 tokens."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
}

TEST_F(CrossCheck, WorldsThatAreNoPowerOfTwoAndSizesThatNothingDividesAreFine) {
  EXPECT_NO_THROW(load_text("parallel.ranks = 6\nparallel.expert_group = 2\ndata.rows_per_step = 6"));
  EXPECT_NO_THROW(load_text("parallel.ranks = 5\ntopology.ranks_per_node = 3\ndata.rows_per_step = 5"));
  EXPECT_NO_THROW(load_text("parallel.ranks = 4\nparallel.replicas = 2\nparallel.expert_group = 2"));
  EXPECT_NO_THROW(load_text("model.expert_ffn = 5\nmodel.hidden = 9"));
  EXPECT_NO_THROW(load_text("parallel.ranks = 3\nparallel.expert_group = 3\ndata.rows_per_step = 3"));
}

TEST_F(CrossCheck, RowsNameTheNearestNumberThatFits) {
  auto nearest = [&](int rows, int ranks) {
    std::string error =
        error_of("data.rows_per_step = " + std::to_string(rows) + "\nparallel.ranks = " + std::to_string(ranks));
    auto at = error.find("the nearest that fits is ");
    return at == std::string::npos ? error : error.substr(at + 25);
  };
  EXPECT_EQ(nearest(7, 2), "6.");  // equally near: the smaller
  EXPECT_EQ(nearest(11, 4), "12.");
  EXPECT_EQ(nearest(1, 3), "3.");
  EXPECT_EQ(nearest(9, 4), "8.");
  EXPECT_EQ(nearest(12, 3), "no error");
}

TEST_F(CrossCheck, RowsThatWouldMakeAnEndlessPlanAreRefused) {
  EXPECT_EQ(error_of("model.layers = 4\ndata.rows_per_step = 20000"),
            "recipe.toml:2: key 'data.rows_per_step' is 20000, 20000 rows a rank; with 4 layers at most 4096 are "
            "possible: use fewer, or more ranks.");
  EXPECT_NO_THROW(load_text("model.layers = 4\ndata.rows_per_step = 8192\nparallel.ranks = 2"));
}

TEST_F(CrossCheck, SizesThatMakeSomethingEndlessTogetherAreRefused) {
  const Case cases[] = {
      {"model.heads = 65536\nmodel.qk_dim = 65536",
       "recipe.toml:2: key 'model.qk_dim' is 65536; with model.heads = 65536 at most 256 is possible."},
      {"model.heads = 65536\nmodel.v_dim = 300",
       "recipe.toml:2: key 'model.v_dim' is 300; with model.heads = 65536 at most 256 is possible."},
      {"model.layers = 1024\nmodel.experts = 65536",
       "recipe.toml:2: key 'model.experts' is 65536; with 1023 layers that have experts at most 64 is possible."},
      {"model.layers = 1000000", "recipe.toml:1: key 'model.layers' is 1000000, but has to be 1 to 1024."},
      {"model.hidden = 16777216\nmodel.experts = 65536\nmodel.expert_ffn = 16777216",
       "recipe.toml:1: key 'model.hidden' is 16777216; with the other sizes that makes 5.5e+19 parameters, more than "
       "1e+16."},
      {"data.seq_len = 16777216\ndata.rows_per_step = 128",
       "recipe.toml:2: key 'data.rows_per_step' is 128, 128 rows a rank; with data.seq_len = 16777216 at most 127 are "
       "possible."},
      {"data.seq_len = 16777216\nvalidation.rows = 4096",
       "recipe.toml:2: key 'validation.rows' is 4096, 4096 rows a rank; with data.seq_len = 16777216 at most 127 are "
       "possible."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
}

TEST_F(CrossCheck, LargestKnownModelsFit) {
  EXPECT_NO_THROW(
      load_text("model.vocabulary = 256000\nmodel.hidden = 6144\nmodel.layers = 74\nmodel.dense_layers = 0\n"
                "model.experts = 384\nmodel.top_k = 8\nmodel.expert_ffn = 1792\nmodel.heads = 64\n"
                "model.kv_heads_global = 8\nmodel.kv_heads_sliding = 8\nmodel.qk_dim = 128\nmodel.v_dim = 128\n"
                "parallel.ranks = 384\nparallel.expert_group = 4\ndata.seq_len = 65536\ndata.rows_per_step = 384"));
}

TEST_F(CrossCheck, ModelsWithoutExpertsOrRotationAreFine) {
  EXPECT_NO_THROW(load_text("model.experts = 0\nmodel.top_k = 2"));
  EXPECT_NO_THROW(load_text("model.rotary_fraction = 0\nmodel.qk_dim = 1"));
}

}  // namespace
}  // namespace ganymede::config
