#include "common/placement/update_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/builtin_facts.h"

namespace ganymede::placement {
namespace {

using testing::HasSubstr;

class Groups : public testing::Test {
 protected:
  Groups() { settings_.name = "muon"; }

  UpdateGroups groups() const { return update_groups(settings_, parameters_, facts_); }
  std::string refusal() const {
    try {
      groups();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "no error";
  }
  /// Name of the optimizer of the parameter whose name ends so.
  std::string optimizer_of(const std::string& ending) const {
    UpdateGroups all = groups();
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].name.ends_with(ending)) return all.optimizer_of(static_cast<int>(i)).name;
    return "no such parameter";
  }

  config::Optimizer settings_;
  std::vector<model_spec::ParameterSpec> parameters_ = model_spec::parameters(config::Model{});
  std::vector<OptimizerFacts> facts_ = builtin_facts();
};

TEST_F(Groups, AnOptimizerOfMatricesGetsThoseOfLayersAndTheRestGoesToAdamW) {
  add_rest(settings_, facts_);
  for (const char* name : {"self_attn.q_proj.weight", "self_attn.o_proj.weight", "layers.0.mlp.down_proj.weight",
                           "mlp.experts.3.up_proj.weight"})
    EXPECT_EQ(optimizer_of(name), "muon") << name;
  for (const char* name : {"embed_tokens.weight", "lm_head.weight", "input_layernorm.weight", "mlp.gate.weight",
                           "e_score_correction_bias", "attention_sink_bias"})
    EXPECT_EQ(optimizer_of(name), "adamw") << name;
  EXPECT_EQ(groups().columns(), 2u);
  EXPECT_THAT(groups().slot_names(), testing::ElementsAre("momentum", "first_moment", "second_moment"));
}

TEST_F(Groups, TheRestCountsAsAGroup) {
  for (char name = 'a'; name < 'h'; ++name) settings_.groups[std::string(1, name)].match = {"x"};
  EXPECT_THROW(add_rest(settings_, facts_), Error);
}

TEST_F(Groups, TheRestIsWhoeverTheConfigurationNames) {
  settings_.groups["rest"].optimizer = "sgd";
  add_rest(settings_, facts_);
  EXPECT_EQ(optimizer_of("embed_tokens.weight"), "sgd");
}

TEST_F(Groups, WithoutMatricesThereIsNoRest) {
  settings_.name = "adamw";
  add_rest(settings_, facts_);
  EXPECT_TRUE(settings_.groups.empty());
  EXPECT_EQ(groups().groups.size(), 1u);
}

TEST_F(Groups, ARestThatNothingIsLeftForIsRefused) {
  settings_.name = "adamw";
  settings_.groups["rest"].lr = 0.5;
  EXPECT_THAT(refusal(), HasSubstr("'adamw' (optimizer.name) updates every parameter: take the section out"));
}

TEST_F(Groups, AGroupTakesWhatItsPatternsNameAndKeepsItsDecayForAllOfIt) {
  settings_.name = "adamw";
  settings_.groups["attention"] = {{"*.q_proj.weight", "*.k_proj.weight"}, "sgd", 0.5, -1};
  settings_.groups["vectors"] = {{"*norm.weight"}, "", -1, 0.25};
  EXPECT_EQ(optimizer_of("self_attn.q_proj.weight"), "sgd");
  EXPECT_EQ(optimizer_of("self_attn.v_proj.weight"), "adamw");
  EXPECT_EQ(groups().groups[1].name, "attention");
  EXPECT_FALSE(groups().groups[1].decays_vectors);
  EXPECT_TRUE(groups().groups[2].decays_vectors);
}

TEST_F(Groups, WhatDoesNotFitIsRefusedByNames) {
  EXPECT_THAT(refusal(), HasSubstr("say in [optimizer.group.rest] who updates the others"));
  add_rest(settings_, facts_);
  settings_.groups["a"].match = {"*.q_proj.weight"};
  settings_.groups["b"].match = {"model.layers.1.self_attn.?_proj.weight"};
  EXPECT_THAT(refusal(), HasSubstr("model.layers.1.self_attn.q_proj.weight is in two groups, [optimizer.group.a] and "
                                   "[optimizer.group.b]"));
  settings_.groups["b"].match = {"model.layers.1.input_layernorm.weight"};
  EXPECT_THAT(refusal(), HasSubstr("gives model.layers.1.input_layernorm.weight to optimizer 'muon', which updates "
                                   "matrices only: name another in optimizer.group.b.optimizer"));
  settings_.groups["b"].match = {"layers.1"};
  EXPECT_THAT(refusal(), HasSubstr("[optimizer.group.b] matches no parameter"));
}

}  // namespace
}  // namespace ganymede::placement
