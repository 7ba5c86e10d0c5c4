#include <random>

#include "tests/unit/config/recipe_file.h"

namespace ganymede::config {
namespace {

using BadRecipe = RecipeFile;
using BadSetting = RecipeFile;

struct Case {
  std::string text;
  std::string error;
};

TEST_F(BadRecipe, UnknownKeyIsNamedWithItsLineAndTheNearestKey) {
  const Case cases[] = {
      {"[model]\nlayers = 2\nhiden = 3\n",
       "recipe.toml:3: key 'model.hiden' is not known; did you mean 'model.hidden'?"},
      {"model.layesr = 2", "recipe.toml:1: key 'model.layesr' is not known; did you mean 'model.layers'?"},
      {"[modell]\nhidden = 3", "recipe.toml:2: key 'modell.hidden' is not known; did you mean 'model.hidden'?"},
      {"[compute]\ndevice = \"cuda\"", "recipe.toml:2: key 'compute.device' is not known."},
      {"ranke = 3", "recipe.toml:1: key 'ranke' is not known; did you mean 'parallel.ranks'?"},
      {"lr = 3", "recipe.toml:1: key 'lr' is not known; did you mean 'optimizer.lr'?"},
      {"[model]\nlr = 3", "recipe.toml:2: key 'model.lr' is not known; did you mean 'optimizer.lr'?"},
      {"recomptue = \"full\"", "recipe.toml:1: key 'recomptue' is not known; did you mean 'recompute'?"},
      {"[run]\nzzzzzzzzzz = 1", "recipe.toml:2: key 'run.zzzzzzzzzz' is not known."},
      {"[run.steps]\nmore = 1", "recipe.toml:2: key 'run.steps.more' is not known; did you mean 'run.steps'?"},
      {"model = 3", "recipe.toml:1: 'model' is a section with keys of its own, not a key."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
}

TEST_F(BadRecipe, WrongTypeSaysWhatItIsAndWhatItHasToBe) {
  const Case cases[] = {
      {"model.hidden = \"64\"", "recipe.toml:1: key 'model.hidden' has to be a whole number, not the text \"64\"."},
      {"model.hidden = 64.0", "recipe.toml:1: key 'model.hidden' has to be a whole number, not the number 64."},
      {"run.seed = true", "recipe.toml:1: key 'run.seed' has to be a whole number, not true."},
      {"optimizer.lr = \"big\"", "recipe.toml:1: key 'optimizer.lr' has to be a number, not the text \"big\"."},
      {"model.sinks = 1", "recipe.toml:1: key 'model.sinks' has to be true or false, not the number 1."},
      {"data.path = 3", "recipe.toml:1: key 'data.path' has to be text in quotes, not the number 3."},
      {"data.path = 2020-01-01", "recipe.toml:1: key 'data.path' has to be text in quotes, not a date or time."},
      {"[data]\nsources = \"a\"",
       "recipe.toml:2: key 'data.sources' has to be a list of texts like [\"a\", \"b\"], not the text \"a\"."},
      {"[data]\nsources = [\"a\", 3]",
       "recipe.toml:2: key 'data.sources' has to be a list of texts like [\"a\", \"b\"], not a list with something "
       "other "
       "than text in it."},
      {"data.path = {}", "recipe.toml:1: key 'data.path' has to be text in quotes, not a section."},
      {"compute.dtype = 32",
       "recipe.toml:1: key 'compute.dtype' has to be one of \"fp32\", \"bf16\", not the number 32."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
}

TEST_F(BadRecipe, ValueOutOfRangeSaysTheRange) {
  const Case cases[] = {
      {"run.steps = 0", "recipe.toml:1: key 'run.steps' is 0, but has to be 1 to 1000000000000."},
      {"run.seed = -1", "recipe.toml:1: key 'run.seed' is -1, but has to be 0 to 9223372036854775807."},
      {"data.seq_len = 1", "recipe.toml:1: key 'data.seq_len' is 1, but has to be 2 to 16777216."},
      {"model.hidden = 99999999999", "recipe.toml:1: key 'model.hidden' is 99999999999, but has to be 1 to 16777216."},
      {"model.qk_dim = 0", "recipe.toml:1: key 'model.qk_dim' is 0, but has to be 1 to 65536."},
      {"optimizer.lr = nan", "recipe.toml:1: key 'optimizer.lr' is nan, but has to be 0 to 1000."},
      {"optimizer.lr = inf", "recipe.toml:1: key 'optimizer.lr' is inf, but has to be 0 to 1000."},
      {"optimizer.lr = -1e-3", "recipe.toml:1: key 'optimizer.lr' is -0.001, but has to be 0 to 1000."},
      {"optimizer.min_lr_ratio = 2", "recipe.toml:1: key 'optimizer.min_lr_ratio' is 2, but has to be 0 to 1."},
      {"optimizer.adamw.eps = nan", "recipe.toml:1: key 'optimizer.adamw.eps' is nan, but has to be a finite number."},
      {"optimizer.adamw.eps = \"small\"",
       "recipe.toml:1: key 'optimizer.adamw.eps' has to be a number, not the text \"small\"."},
      {"optimizer.adamw.a.b = 1", "recipe.toml:1: key 'optimizer.adamw.a.b' is not known."},
      {"model.rope_theta_global = 0.0",
       "recipe.toml:1: key 'model.rope_theta_global' is 0, but has to be above 0 and up to 1000000000000."},
      {"offload.fraction = 1.5", "recipe.toml:1: key 'offload.fraction' is 1.5, but has to be 0 to 1."},
      {"compute.dtype = \"fp16\"",
       "recipe.toml:1: key 'compute.dtype' is \"fp16\", but has to be one of \"fp32\", \"bf16\"; did you mean "
       "\"fp32\"?"},
      {"recompute = \"some\"",
       "recipe.toml:1: key 'recompute' is \"some\", but has to be one of \"full\", \"selective\", \"none\"; did you "
       "mean "
       "\"none\"?"},
      {"data.path = \"a\\u0000b\"", "recipe.toml:1: key 'data.path' has a zero byte in its text."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
}

TEST_F(BadRecipe, NumberThatNoWholeNumberHoldsIsOutOfRange) {
  const Case cases[] = {
      {"run.steps = 99999999999999999999 # many",
       "recipe.toml:1: key 'run.steps' is 99999999999999999999, but has to be 1 to 1000000000000."},
      {"[run]\nname = \"a\"\nseed = 9223372036854775808",
       "recipe.toml:3: key 'run.seed' is 9223372036854775808, but has to be 0 to 9223372036854775807."},
      {"run.seed = -9223372036854775809",
       "recipe.toml:1: key 'run.seed' is -9223372036854775809, but has to be 0 to 9223372036854775807."},
      {"run.steps = 0xFFFFFFFFFFFFFFFFFF",
       "recipe.toml:1: key 'run.steps' is 0xFFFFFFFFFFFFFFFFFF, but has to be 1 to 1000000000000."},
      {"\"run\".\"n\u00e4me\" = 9_999_999_999_999_999_999",
       "recipe.toml:1: key 'run.n\u00e4me' is not known; did you mean 'run.name'?"},
      {"optimizer.lr = 99999999999999999999",
       "recipe.toml:1: key 'optimizer.lr' is 99999999999999999999, but has to be 0 to 1000."},
      {"model.sinks = 99999999999999999999",
       "recipe.toml:1: key 'model.sinks' has to be true or false, not the number 99999999999999999999."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
  std::string many;
  for (int i = 0; i < 100; ++i) many += "k" + std::to_string(i) + " = 99999999999999999999\n";
  EXPECT_TRUE(error_of(many).starts_with("recipe.toml:17: this is not TOML: "));
}

TEST_F(BadRecipe, LargestWholeNumberIsTaken) {
  EXPECT_EQ(load_text("run.seed = 9223372036854775807").run.seed, 9223372036854775807u);
}

TEST_F(BadRecipe, BrokenTomlIsNamedWithItsLine) {
  EXPECT_TRUE(error_of("[model\nhidden = 3").starts_with("recipe.toml:1: this is not TOML: "));
  EXPECT_TRUE(error_of("[model]\nhidden = \n").starts_with("recipe.toml:2: this is not TOML: "));
  EXPECT_TRUE(error_of("[run]\nseed = 1\nseed = 2").starts_with("recipe.toml:3: this is not TOML: "));
  EXPECT_TRUE(error_of("a = \"\xff\"").starts_with("recipe.toml:1: this is not TOML: "));
  EXPECT_TRUE(error_of(std::string(100'000, '[')).find("this is not TOML") != std::string::npos);
}

TEST_F(BadRecipe, FileThatIsNotThereIsOneSentence) {
  auto error = [&](const std::string& path) {
    try {
      load(path, {});
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::usage);
      return without_folder(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error(folder + "/none.toml"), "Recipe none.toml does not exist.");
  EXPECT_EQ(error("/dev"), "Recipe /dev is not a file.");
  EXPECT_EQ(error(""), "Recipe  does not exist.");
}

TEST_F(BadRecipe, RandomBytesNeverDoMoreThanFail) {
  std::mt19937 random(5);
  const std::string alphabet = "[]=.\"'#\n\\ {},abmodelrunhidden0123456789-+e_\t\x80\xc3\xff";
  for (int i = 0; i < 400; ++i) {
    std::string text = i % 2 ? "[model]\nhidden = " : "";
    for (auto n = random() % 40; n > 0; --n) text += alphabet[random() % alphabet.size()];
    try {
      load_text(text);
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), ExitCode::usage) << e.what();
    }
  }
}

TEST_F(BadSetting, IsNamedInsteadOfFileAndLine) {
  const Case cases[] = {
      {"model.hiden=3", "--set model.hiden=3: key 'model.hiden' is not known; did you mean 'model.hidden'?"},
      {"optimizer.lr=fast", "--set optimizer.lr=fast: key 'optimizer.lr' has to be a number, not the text \"fast\"."},
      {"run.steps=0", "--set run.steps=0: key 'run.steps' is 0, but has to be 1 to 1000000000000."},
      {"run.steps=99999999999999999999",
       "--set run.steps=99999999999999999999: key 'run.steps' is 99999999999999999999, but has to be 1 to "
       "1000000000000."},
      {"compute.threads=1025", "--set compute.threads=1025: key 'compute.threads' is 1025, but has to be 0 to 1024."},
      {"launch.heartbeat_timeout_seconds=0.1",
       "--set launch.heartbeat_timeout_seconds=0.1: key 'launch.heartbeat_timeout_seconds' is 0.1, but has to be 1 to "
       "604800."},
      {"run.steps=", "--set run.steps=: key 'run.steps' has to be a whole number, not the text \"\"."},
      {"steps", "--set steps: a setting is written key=value, for example --set optimizer.lr=3e-4."},
      {"=3", "--set =3: a setting is written key=value, for example --set optimizer.lr=3e-4."},
      {"run.steps=3\nrun.seed=4",
       "--set run.steps=3\nrun.seed=4: key 'run.steps' has to be a whole number, not the text \"3\\u000arun.seed=4\"."},
      {"data.path=\xff", "--set data.path=\xff: the value is not UTF-8 text."},
      {"parallel.ranks=3",
       "recipe.toml: key 'data.rows_per_step' is 4, which 3 ranks cannot share evenly; the nearest "
       "that fits is 3."},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of("", {c.text}), c.error) << c.text;
}

}  // namespace
}  // namespace ganymede::config
