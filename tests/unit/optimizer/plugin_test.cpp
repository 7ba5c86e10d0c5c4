#include "services/optimizer/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "common/base/error.h"
#include "common/os/files.h"
#include "services/optimizer/plugin_commands.h"
#include "services/optimizer/plugin_folder.h"
#include "services/optimizer/rehearsal.h"
#include "tests/support/tree.h"

namespace ganymede::optimizer {
namespace {

namespace fs = std::filesystem;

const std::string built_in = GANYMEDE_BINARY_DIR "/plugins";
const std::string faulty = FAULTY_PLUGINS;

/// The text of the Error that `call` throws.
template <class Call>
std::string refusal(Call call, ExitCode code = ExitCode::failed) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

class PluginFiles : public testing::Test {
 protected:
  PluginFiles() {
    std::string pattern = testing::TempDir() + "/pluginXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~PluginFiles() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& content) { std::ofstream(folder_ / name) << content; }
  std::string path(const std::string& name = "") const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

TEST(Plugin, AdamwIsSound) {
  Plugin plugin = load_plugin(built_in + "/adamw.so");
  EXPECT_STREQ(plugin.table->name, "adamw");
  EXPECT_THAT(plugin.facts("adamw").slots, testing::ElementsAre("first_moment", "second_moment"));
  EXPECT_STREQ(plugin.table->slots[0].meaning, "momentum");
  EXPECT_NE(plugin.hash, 0u);
}

TEST(Plugin, NormuonHasASlotOfRows) {
  Plugin plugin = load_plugin(built_in + "/normuon.so");
  EXPECT_EQ(
      plugin.facts("normuon"),
      (placement::OptimizerFacts{"normuon", {"momentum", "row_second_moment"}, true, {"row_second_moment"}, true}));
  EXPECT_THAT(describe_plugin(built_in, "normuon", false),
              testing::AllOf(testing::HasSubstr("state momentum: momentum, 4 bytes a parameter"),
                             testing::HasSubstr("state row_second_moment: second_moment, 4 bytes a row of a matrix")));
  EXPECT_THAT(list_plugins(built_in, false), testing::HasSubstr("normuon 1.0"));
}

TEST(Plugin, EachFaultIsNamed) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"other_symbol", "no symbol ganymede_optimizer_v1"},
      {"other_abi", "speaks ABI 2"},
      {"other_size", "table of 8 bytes"},
      {"other_slots", "state slots of 8 bytes"},
      {"other_keys", "hyper-parameters of 40 bytes"},
      {"no_update", "no update_chunk"},
      {"too_many_slots", "1000 slots"},
      {"same_slot_twice", "'first' is taken twice"},
      {"bad_slot_name", "slot 1 must be lower-case"},
      {"reserved_slot", "'redo' is taken twice or reserved"},
      {"unknown_shape", "the shape of 'second' is 2"},
      {"rows_of_none", "per-row slot 'second', but no update_matrix"},
      {"matrix_without_apply", "update_matrix, but no apply_chunk"},
      {"unknown_reduction", "'gradient_norm', which is not known; there are attention_logit, gradient_square"},
      {"same_reduction_twice", "'attention_logit' twice"},
      {"too_many_reductions", "1000 names"}};
  for (const auto& [name, part] : faults) {
    std::string text = refusal([&] { load_plugin(faulty + "/" + name + ".so"); });
    EXPECT_THAT(text, testing::HasSubstr(part));
    EXPECT_THAT(text, testing::HasSubstr(name + ".so"));
  }
  EXPECT_NO_THROW(load_plugin(faulty + "/sound.so"));
}

TEST_F(PluginFiles, FileThatIsNoLibraryIsRefused) {
  write("text.so", "not a library");
  EXPECT_THAT(refusal([&] { load_plugin(path("text.so")); }), testing::HasSubstr("not a library"));
  EXPECT_THAT(refusal([&] { load_plugin(path("absent.so")); }), testing::HasSubstr("absent.so"));
}

TEST(Plugin, UnknownNameIsAnsweredWithTheKnownOnes) {
  EXPECT_THAT(refusal([] { find_plugin(built_in, "adamv"); }, ExitCode::usage), testing::HasSubstr("adamw"));
}

TEST(Plugin, NearestOfSeveralNamesIsProposed) {
  std::string text = refusal([] { find_plugin(faulty, "sounds"); }, ExitCode::usage);
  EXPECT_THAT(text, testing::HasSubstr("'sounds' (optimizer.name)"));
  EXPECT_THAT(text, testing::HasSubstr("did you mean 'sound'?"));
}

TEST_F(PluginFiles, RecipeIsCheckedWithoutACopy) {
  write("recipe.toml", "[optimizer]\nname = \"sound\"\nplugin_folder = \"" + faulty + "\"\n");
  EXPECT_EQ(check_recipe(path("recipe.toml"), {}), "faulty 0.1");
  EXPECT_THAT(check_recipe(path("recipe.toml"), {}, {.json = true}),
              testing::HasSubstr(R"("name":"sound","version":"0.1","slots":["first","second"],"matrices":false)"));
  EXPECT_THAT(refusal([&] { check_recipe(path("recipe.toml"), {"optimizer.name=none"}); }, ExitCode::usage),
              testing::HasSubstr("'none' (optimizer.name)"));
  EXPECT_THAT(refusal([&] { check_recipe(path("recipe.toml"), {"optimizer.sound.lr=0.75"}); }, ExitCode::usage),
              testing::HasSubstr("'optimizer.sound.lr' is 0.75, but has to be 0 to 0.5"));
  EXPECT_THAT(refusal([&] { check_recipe(path("recipe.toml"), {"optimizer.soundd.lr=0.25"}); }, ExitCode::usage),
              testing::HasSubstr("'soundd'"));
  EXPECT_THAT(refusal([&] { check_recipe(path("recipe.toml"), {"optimizer.name=other_abi"}); }),
              testing::HasSubstr("other_abi"));
  EXPECT_FALSE(fs::exists(path("plugins")));
}

TEST_F(PluginFiles, NothingOutsideTheFolderIsFound) {
  fs::create_directory(path("inner"));
  write("outside.so", "");
  for (std::string name : {"../outside", "/etc/passwd", "", ".", ".."}) {
    EXPECT_THAT(refusal([&] { find_plugin(path("inner"), name); }, ExitCode::usage), testing::HasSubstr("none"))
        << name;
  }
  EXPECT_THAT(refusal([&] { find_plugin(path("nowhere"), "adamw"); }, ExitCode::usage),
              testing::HasSubstr("cannot be read"));
}

TEST_F(PluginFiles, PreparedCopyLiesUnderItsHash) {
  PreparedPlugin first = prepare_plugin(built_in, "adamw", path());
  EXPECT_EQ(first.path, fmt::format("plugins/adamw.{:016x}.so", first.plugin.hash));
  EXPECT_TRUE(fs::exists(path(first.path)));
  auto written = fs::last_write_time(path(first.path));
  EXPECT_EQ(prepare_plugin(built_in, "adamw", path()).path, first.path);
  EXPECT_EQ(fs::last_write_time(path(first.path)), written) << "copied once";
}

TEST_F(PluginFiles, FaultOfAPluginNamesItsFileAndLeavesNoCopy) {
  fs::create_directory(path("mine"));
  write("mine/text.so", "not a library");
  std::string text = refusal([&] { prepare_plugin(path("mine"), "text", path()); });
  EXPECT_THAT(text, testing::HasSubstr("optimizer plugin " + path("mine/text.so") + " is not a library"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr(path("plugins/text."))));
  EXPECT_TRUE(fs::is_empty(path("plugins")));
}

TEST_F(PluginFiles, LibraryWhoseEndIsMissingIsRefusedBeforeItIsLoaded) {
  fs::create_directory(path("mine"));
  std::string whole = os::read_file(find_plugin(built_in, "adamw"));
  for (std::size_t size : {100, 3000}) {
    write("mine/adamw.so", whole.substr(0, size));
    std::string file = path("mine/adamw.so");
    EXPECT_EQ(refusal([&] { load_plugin(file); }),
              "optimizer plugin " + file + " is damaged: its end is missing; build it again");
  }
}

TEST_F(PluginFiles, DamagedCopyIsReplaced) {
  PreparedPlugin first = prepare_plugin(faulty, "sound", path());
  std::string copy = path(first.path), other = copy + ".damaged";
  // A mapped library is never truncated in place: the damage comes by another file under its name.
  fs::copy_file(copy, other);
  fs::resize_file(other, fs::file_size(copy) / 2);
  fs::rename(other, copy);
  EXPECT_NO_THROW(prepare_plugin(faulty, "sound", path()));
  EXPECT_EQ(fs::file_size(copy), fs::file_size(faulty + "/sound.so"));
}

TEST(Plugin, HyperParametersAreTheConfiguredOnesAndDefaults) {
  Plugin adamw = load_plugin(built_in + "/adamw.so");
  config::Optimizer settings;
  settings.hyper = {{"adamw.beta2", 0.99}, {"other.key", 7}};
  const std::map<std::string, double> expected = {{"adamw.beta1", 0.9}, {"adamw.beta2", 0.99}, {"adamw.eps", 1e-8}};
  EXPECT_EQ(hyper_parameters(*adamw.table, "adamw", settings), expected);
}

TEST(Plugin, HyperParametersAreHeldAgainstItsRanges) {
  Plugin sound = load_plugin(faulty + "/sound.so");
  auto refused = [&](const std::string& key, double value) {
    config::Optimizer settings;
    settings.hyper[key] = value;
    return refusal([&] { hyper_parameters(*sound.table, "sound", settings); }, ExitCode::usage);
  };
  EXPECT_THAT(refused("sound.lr", 0.75),
              testing::HasSubstr("Key 'optimizer.sound.lr' is 0.75, but has to be 0 to 0.5"));
  EXPECT_THAT(refused("sound.momentum", 0.5),
              testing::HasSubstr("Key 'optimizer.sound.momentum' is not known; there are optimizer.sound.lr"));
}

TEST(Plugin, FractionsOfWhatIsWholeAreRefused) {
  Plugin muon = load_plugin(built_in + "/muon.so");
  config::Optimizer settings;
  settings.hyper["muon.nesterov"] = 0;
  EXPECT_EQ(hyper_parameters(*muon.table, "muon", settings).at("muon.nesterov"), 0);
  settings.hyper["muon.nesterov"] = 0.5;
  EXPECT_THAT(refusal([&] { hyper_parameters(*muon.table, "muon", settings); }, ExitCode::usage),
              testing::HasSubstr("Key 'optimizer.muon.nesterov' is 0.5, but has to be a whole number, 0 to 1"));
}

TEST_F(PluginFiles, WhatIsFixedIsRefusedInARunThatLives) {
  write("recipe.toml", "[optimizer]\nname = \"fixed_key\"\nplugin_folder = \"" + faulty + "\"\n");
  const std::vector<std::string> change = {"optimizer.fixed_key.lr=0.25"};
  EXPECT_NO_THROW(check_recipe(path("recipe.toml"), change));
  EXPECT_THAT(refusal([&] { check_recipe(path("recipe.toml"), change, {.running = true}); }, ExitCode::usage),
              testing::HasSubstr("'optimizer.fixed_key.lr' is fixed for the life of a run"));
  EXPECT_NO_THROW(check_recipe(path("recipe.toml"), {"optimizer.lr=0.25"}, {.running = true}));
  EXPECT_THAT(describe_plugin(faulty, "fixed_key", false), testing::HasSubstr("(0 to 0.5; fixed while a run lives)"));
}

TEST_F(PluginFiles, WhatCannotUpdateASmallMatrixIsRefused) {
  auto refused = [&](const std::string& name, const std::string& settings = "") {
    write("recipe.toml", "[optimizer]\nname = \"" + name + "\"\nplugin_folder = \"" + faulty + "\"\n" + settings);
    return refusal([&] { check_recipe(path("recipe.toml"), {}); });
  };
  EXPECT_THAT(refused("failing"), testing::HasSubstr("failing.so cannot compute even the update of a small matrix "
                                                     "(update_chunk returns 7)"));
  EXPECT_THAT(refused("not_finite"), testing::HasSubstr("not_finite.so makes values that are not finite out of small "
                                                        "ones (update_chunk): mend it, or its settings"));
}

TEST(Plugin, BuiltInsWithstandTheRehearsal) {
  for (const std::string& name : available_plugins(built_in)) {
    config::Optimizer settings;
    PreparedPlugin plugin{name, load_plugin(built_in + "/" + name + ".so"), name, name};
    EXPECT_NO_THROW(rehearse(plugin, hyper_parameters(*plugin.plugin.table, name, settings))) << name;
  }
}

TEST(Plugin, TableOfHyperParametersIsChecked) {
  for (const char* name : {"bad_key", "unknown_flag", "broken_whole"})
    EXPECT_THAT(refusal([&] { load_plugin(faulty + "/" + name + ".so"); }),
                testing::HasSubstr("table of hyper-parameters"));
}

TEST(PluginCommands, ListNamesSoundAndBrokenOnes) {
  std::string text = list_plugins(faulty, false, 0.5);
  EXPECT_THAT(text, testing::HasSubstr("sound 0.1"));
  EXPECT_THAT(text, testing::HasSubstr("other_abi: optimizer plugin"));
  EXPECT_THAT(text, testing::HasSubstr("/crashing.so ended the program that loads it (killed by SIG"));
  EXPECT_THAT(text, testing::HasSubstr("/looping.so was still being loaded and tried after 500 ms"));
  EXPECT_THAT(list_plugins(built_in, true), testing::HasSubstr("\"name\":\"adamw\""));
}

TEST(PluginCommands, DescribeTellsSlotsAndRanges) {
  EXPECT_THAT(describe_plugin(built_in, "adamw", false), testing::HasSubstr("state first_moment"));
  EXPECT_THAT(describe_plugin(built_in, "adamw", false),
              testing::HasSubstr("optimizer.adamw.beta1 = 0.9: decay of the first moment (0 to 0.999999)"));
  EXPECT_THAT(describe_plugin(built_in, "adamw", true), testing::HasSubstr("\"meaning\":\"second_moment\""));
}

TEST_F(PluginFiles, WhatMuonCannotDoIsRefusedBeforeARunIsMade) {
  write("muon.toml", "[optimizer]\nname = \"muon\"\nplugin_folder = \"" + built_in + "\"\n");
  auto refused = [&](const std::vector<std::string>& settings) {
    return refusal([&] { check_recipe(path("muon.toml"), settings); }, ExitCode::usage);
  };
  EXPECT_EQ(check_recipe(path("muon.toml"), {}), "muon 1.0, adamw 1.0");
  std::string bf16 = "newton_schulz.dtype=bf16";
  EXPECT_THAT(refused({bf16, "newton_schulz.where=optimizer"}), testing::HasSubstr("where = \"optimizer\" needs fp32"));
  EXPECT_THAT(refused({bf16, "newton_schulz.form=gram"}),
              testing::HasSubstr("newton_schulz.form = \"gram\" needs fp32"));
  EXPECT_THAT(refused({bf16, "newton_schulz.coefficients=cans5"}), testing::HasSubstr("coefficients needs fp32"));
  EXPECT_THAT(refused({"newton_schulz.coefficients=kj6"}), testing::HasSubstr("\"kj5\"?"));
  EXPECT_THAT(refused({"parallel.ranks=2", "parallel.replicas=2", "replicas.state=sharded"}),
              testing::HasSubstr("set it to \"replicated\""));
  EXPECT_THAT(refused({"optimizer.group.rest.optimizer=nope"}),
              testing::HasSubstr("'nope' (optimizer.group.rest.optimizer)"));
  EXPECT_THAT(refused({"optimizer.group.rest.optimizer=muon"}), testing::HasSubstr("which updates matrices only"));
}

TEST_F(PluginFiles, PrepareRunPrintsWhatTheLauncherNeeds) {
  write("config.toml", "[optimizer]\nname = \"adamw\"\nplugin_folder = \"" + built_in + "\"\n");
  std::string text = prepare_run(path());
  EXPECT_THAT(text, testing::HasSubstr(R"("slots":["first_moment","second_moment"])"));
  EXPECT_THAT(text, testing::HasSubstr(R"("hyper":{"adamw.beta1":0.9,"adamw.beta2":0.95,"adamw.eps":1e-08})"));
  EXPECT_THAT(text, testing::HasSubstr("\"file\":\"plugins/adamw."));
  EXPECT_THAT(refusal([&] { prepare_run(path("absent")); }, ExitCode::usage), testing::HasSubstr("absent"));
}

}  // namespace
}  // namespace ganymede::optimizer
