#include <bit>
#include <random>
#include <set>
#include <sstream>

#include "common/config/fields.h"
#include "tests/support/tree.h"
#include "tests/unit/config/recipe_file.h"

namespace ganymede::config {
namespace {

using Load = RecipeFile;
using Effective = RecipeFile;

TEST_F(Load, ValuesOfTheFileAreOverriddenBySettingsInOrder) {
  auto c =
      load_text("[run]\nsteps = 7\nseed = 3\n[optimizer]\nlr = 1\nwarmup_steps = 0\n", {"run.steps=8", "run.steps=9"});
  EXPECT_EQ(c.run.steps, 9);
  EXPECT_EQ(c.run.seed, 3u);
  EXPECT_EQ(c.optimizer.lr, 1.0);  // a whole number is a number too
  EXPECT_EQ(c.model.hidden, Model{}.hidden);
}

TEST_F(Load, NameIsThatOfTheFileUnlessGiven) {
  EXPECT_EQ(load_text("").run.name, "recipe");
  EXPECT_EQ(load_text("run.name = \"mine\"").run.name, "mine");
  EXPECT_EQ(load_text("", {"run.name=other"}).run.name, "other");
}

TEST_F(Load, SettingsTakeTextWithAndWithoutQuotes) {
  auto text = [&](const std::string& value) { return load_text("", {"sample.prompt=" + value}).sample.prompt; };
  EXPECT_EQ(text("def "), "def ");
  EXPECT_EQ(text("\"def \""), "def ");
  EXPECT_EQ(text("3"), "3");
  EXPECT_EQ(text("true"), "true");
  EXPECT_EQ(text("a=b"), "a=b");
  EXPECT_EQ(text("say \"hi\"\n\t\\"), "say \"hi\"\n\t\\");
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("ä # no comment"), "ä # no comment");
  EXPECT_EQ(load_text("", {"wire.dense_gather=\"bf16\"", "wire.expert_gather=fp8", "compute.dtype=bf16"}).compute.dtype,
            Dtype::bf16);
  EXPECT_EQ(load_text("", {"optimizer.schedule=\"constant\""}).optimizer.schedule, Schedule::constant);
  EXPECT_EQ(load_text("", {"data.sources=[\"a\", \"b c\"]"}).data.sources, (std::vector<std::string>{"a", "b c"}));
}

TEST_F(Effective, ReadsBackWithTheSameBits) {
  std::mt19937_64 random(17);
  for (int i = 0; i < 50; ++i) {
    Config c = load_text("data.tokenizer = \"some file\"");
    c.optimizer.lr = static_cast<double>(random() >> 11) * 0x1p-53;
    c.optimizer.hyper["adamw.eps"] = std::bit_cast<double>((random() >> 12) | 0x0010000000000000);  // a very small one
    c.optimizer.groups["a_1"] = {{"*.bias", "x?"}, i % 2 ? "sgd" : "", c.optimizer.lr / 3, -1};
    c.model.rope_theta_global =
        std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, static_cast<int>(random() % 39));
    c.run.seed = random() >> 1 & ~1023ull;
    c.run.steps = static_cast<std::int64_t>(random() % 1'000'000'000'000) + 10;
    for (auto n = random() % 20; n > 0; --n) c.sample.prompt += static_cast<char>(1 + random() % 127);
    c.data.sources = {c.sample.prompt, "", "ü\"\\\n"};
    c.compute.dtype = random() % 2 ? Dtype::fp32 : Dtype::bf16;
    c.wire.dense_gather = c.compute.dtype == Dtype::bf16 ? ParameterWire::bf16 : ParameterWire::fp32;
    c.wire.expert_gather = random() % 2 ? c.wire.dense_gather : ParameterWire::fp8;
    c.model.sinks = random() % 2;
    std::string text = effective(c);
    Config back = load_text(text);
    ASSERT_EQ(effective(back), text);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back.optimizer.lr), std::bit_cast<std::uint64_t>(c.optimizer.lr));
    ASSERT_EQ(back.optimizer.hyper, c.optimizer.hyper);
    ASSERT_EQ(back.model.rope_theta_global, c.model.rope_theta_global);
    ASSERT_EQ(back.run.seed, c.run.seed);
    ASSERT_EQ(back.data.sources, c.data.sources);
    ASSERT_EQ(back.compute.dtype, c.compute.dtype);
    ASSERT_EQ(back.wire.dense_gather, c.wire.dense_gather);
    ASSERT_EQ(back.wire.expert_gather, c.wire.expert_gather);
  }
}

TEST_F(Effective, HasEveryKeyWithAnExplanation) {
  std::string text = effective(Config{});
  std::set<std::string> seen;
  for (const auto& key : keys()) {
    EXPECT_TRUE(seen.insert(key.key).second) << key.key << " twice";
    EXPECT_FALSE(key.help.empty()) << key.key;
    std::string line = "\n" + name_of(key.key) + " = " + key.standard + "  # " + key.help;
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
  EXPECT_NO_THROW(load_text(text));
}

/// The names of "  type name = value, name = value;".
std::vector<std::string> names_of(const std::string& declaration) {
  std::vector<std::string> names;
  std::istringstream parts(declaration.substr(0, declaration.find(';')));
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    std::string word;
    if (names.empty()) words >> word;  // the type
    words >> word;
    names.push_back(word);
  }
  return names;
}

/// "run.steps", … of the structs in config.h: members of one type a line; functions are none.
std::set<std::string> members_of_the_header() {
  std::ifstream file(GANYMEDE_SOURCE_DIR "/common/config/config.h");
  std::set<std::string> members{
      "recompute",     "expert_exchange",        "keep_gathered", "reuse_embedding", "norm_in_backward",
      "early_release", "gather_on_compute_lane", "rope_cache",    "stream_update",   "reduce_into_compute_pool"};
  std::string section;
  for (std::string line; std::getline(file, line) && !line.starts_with("struct Config {");) {
    std::istringstream words(line.substr(0, line.find(';')));
    std::string first, second;
    words >> first >> second;
    if (first == "struct") {
      section.clear();  // "MicroBatch" is section micro_batch
      for (char c : second) {
        if (std::isupper(c) != 0 && !section.empty()) section += '_';
        section += static_cast<char>(std::tolower(c));
      }
      if (section == "max_ctas") section = "collectives.max_ctas";
    } else if (line.starts_with("  ") && !line.starts_with("  //") && line.find(';') != std::string::npos &&
               line.substr(0, line.find("//")).find('(') == std::string::npos) {
      for (const std::string& name : names_of(line)) members.insert(section + "." + name);
    }
  }
  std::erase_if(members, [](const std::string& key) {  // keys that a recipe names itself
    return key == "optimizer.hyper" || key == "optimizer.groups" || key.starts_with("optimizer_group.");
  });
  members.erase("collectives.max_ctas");  // a section of its own
  return members;
}

TEST(Fields, ListEveryMemberOnce) {
  Config c;
  std::set<std::string> listed;
  std::set<const void*> targets;
  for (const auto& field : fields(c)) {
    EXPECT_TRUE(listed.insert(field.key).second) << field.key << " twice";
    std::visit(
        [&](const auto& target) {
          if constexpr (std::is_pointer_v<std::decay_t<decltype(target)>>) {
            EXPECT_TRUE(targets.insert(target).second) << field.key << " has the member of another key";
          }
        },
        field.target);
  }
  EXPECT_EQ(listed, members_of_the_header());
}

class Recipe : public testing::TestWithParam<std::string> {};

TEST_P(Recipe, Loads) {
  std::string path = std::string(GANYMEDE_SOURCE_DIR) + "/configs/recipes/" + GetParam();
  Config c = load(path, {});
  EXPECT_EQ(c.run.name + ".toml", GetParam());
  EXPECT_FALSE(c.data.path.empty());
  bool only_planned = c.run.name == "reference";  // its data are nowhere
  EXPECT_EQ(c.data.sources.empty(), only_planned);
}

std::vector<std::string> recipes() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GANYMEDE_SOURCE_DIR "/configs/recipes")) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(EveryRecipe, Recipe, testing::ValuesIn(recipes()),
                         [](const auto& recipe) { return recipe.param.substr(0, recipe.param.find('.')); });

TEST(TinyRecipe, FitsOneToFourRanks) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    EXPECT_NO_THROW(
        load(GANYMEDE_SOURCE_DIR "/configs/recipes/tiny.toml", {"parallel.ranks=" + std::to_string(ranks)}));
  }
}

}  // namespace
}  // namespace ganymede::config
