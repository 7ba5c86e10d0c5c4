#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "common/os/files.h"
#include "services/checkpoint/list.h"
#include "services/checkpoint/program.h"
#include "services/checkpoint/value_plan.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/checkpoint/test_cell.h"

namespace ganymede::checkpoint {
namespace {

struct Ran {
  int code = 0;
  std::string out, err;
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

Ran run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ganymede-checkpoint");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  Ran ran;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ran.code = program(static_cast<int>(argv.size()), argv.data());
  std::fflush(nullptr);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

TEST(Commands, ListAndVerifySpeakTheJsonThatScriptsRelyOn) {
  test::TemporaryFolder folder;
  TestWorld(test_config(2, 1), folder.path() + "/checkpoint").checkpoint(7);
  nlohmann::json listed = run({"list", folder.path(), "--json"}).json();
  EXPECT_EQ(listed[0]["step"], 7);
  EXPECT_EQ(listed[0]["complete"], true);
  EXPECT_EQ(listed[0]["loss"], 2.5);
  Ran verified = run({"verify", folder.path(), "--hash", "--json"});
  EXPECT_EQ(verified.code, 0);
  EXPECT_EQ(verified.json()["damaged"], nlohmann::json::array());
  EXPECT_EQ(verified.json()["hash"].get<std::string>().size(), 32u);
  EXPECT_EQ(run({"verify", folder.path() + "/checkpoint", "--step", "7", "--hash", "--json"}).json(), verified.json());
  EXPECT_THAT(run({"list", folder.path()}).out, testing::HasSubstr("complete"));
  EXPECT_THAT(run({"verify", folder.path(), "--hash"}).out, testing::HasSubstr(verified.json()["hash"]));
}

TEST(Commands, ListTellsWhereTheCheckpointsLieAndWhenEachWasWritten) {
  test::TemporaryFolder folder;
  std::string checkpoints = folder.path() + "/checkpoint";
  TestWorld world(test_config(1, 1), checkpoints);
  world.checkpoint(7);
  world.checkpoint(12);
  EXPECT_GT(run({"list", folder.path(), "--json"}).json()[0]["written"], "2024");
  constexpr std::time_t first = 1'700'000'000;
  std::vector<service::Manifest> manifests = service::read_manifests(checkpoints);
  manifests[0].written = 0;  // of a version that wrote no time: that of the file
  manifests[1].written = first + 3600;
  for (const service::Manifest& manifest : manifests) {
    service::write_manifest(checkpoints, manifest);
    const utimbuf times{first, first};
    ASSERT_EQ(utime((checkpoints + "/" + service::manifest_name(manifest.step)).c_str(), &times), 0);
  }
  std::string text = run({"list", folder.path()}).out;
  EXPECT_EQ(text.find(checkpoints + "\n"), 0u) << text;
  std::istringstream lines(text);
  std::vector<std::size_t> columns;  // where the time and the state begin in each line
  for (std::string line; std::getline(lines, line);)
    for (const char* word : {"written", "2023-11-14 2", "state", "complete"})
      if (auto at = line.find(word); at != std::string::npos) columns.push_back(at);
  ASSERT_EQ(columns.size(), 6u) << text;
  for (std::size_t i : {2u, 4u}) {
    EXPECT_EQ(columns[i], columns[0]) << text;
    EXPECT_EQ(columns[i + 1], columns[1]) << text;
  }
  EXPECT_THAT(text, testing::HasSubstr("2023-11-14 23:13:20  complete\n"));
  nlohmann::json listed = run({"list", folder.path(), "--json"}).json();
  EXPECT_EQ(listed[0]["written"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(listed[1]["folder"], checkpoints);
}

TEST(Commands, DamagedManifestIsMarkedAndTheIntactCheckpointVerified) {
  test::TemporaryFolder folder;
  TestWorld(test_config(1, 1), folder.path()).checkpoint(7);
  os::write_file_atomically(folder.path() + "/" + service::manifest_name(9), "{\xff");
  nlohmann::json listed = run({"list", folder.path(), "--json"}).json();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_FALSE(listed[0].contains("damaged"));
  EXPECT_EQ(listed[1]["step"], 9);
  EXPECT_EQ(listed[1]["complete"], false);
  EXPECT_EQ(listed[1]["loss"], nullptr);
  EXPECT_THAT(listed[1]["damaged"].get<std::string>(), testing::HasSubstr("not a JSON object"));
  EXPECT_THAT(run({"list", folder.path()}).out, testing::HasSubstr("damaged: "));
  Ran newest = run({"verify", folder.path(), "--json"});
  EXPECT_EQ(newest.code, 0);
  EXPECT_EQ(newest.json()["step"], 7);
  EXPECT_THAT(newest.err, testing::HasSubstr("step 9 is passed over"));
  EXPECT_EQ(std::count(newest.err.begin(), newest.err.end(), '\n'), 1);
  Ran asked = run({"verify", folder.path(), "--step", "7", "--json"});
  EXPECT_EQ(asked.code, 0);
  EXPECT_EQ(asked.err, "");
  Ran damaged = run({"verify", folder.path(), "--step", "9"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, testing::HasSubstr(service::manifest_name(9)));
}

TEST(Commands, WrongUseEndsInOneLineAndTheRightCode) {
  test::TemporaryFolder folder;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"list"},
                                             {"liste", folder.path()},
                                             {"verify", folder.path(), "--step", "x"},
                                             {"list", folder.path()},
                                             {"dump", folder.path()},
                                             {"verify", folder.path() + "/none"}}) {
    Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  EXPECT_EQ(run({"verify", "--help"}).code, 0);
}

TEST(Commands, DumpIsASafetensorsFileOfTheMasterParameters) {
  test::TemporaryFolder folder;
  TestWorld(test_config(3, 1), folder.path()).checkpoint(7);
  std::string file = folder.path() + "/model.safetensors";
  ASSERT_EQ(run({"dump", folder.path(), "--to", file}).code, 0);
  std::string bytes = os::read_file(file);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["__metadata__"]["step"], "7");
  EXPECT_EQ((8 + length) % 8, 0u);
  placement::Placement placement = placement::build(test_config(1, 1), 0);
  EXPECT_EQ(header.size(), placement.parameters.size() + 1);
  for (const model_spec::ParameterSpec& parameter : placement.parameters) {
    const nlohmann::json& entry = header.at(parameter.name);
    EXPECT_EQ(entry["dtype"], "F32");
    EXPECT_EQ(entry["shape"].get<std::vector<std::int64_t>>(), parameter.shape);
    std::uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    ASSERT_EQ(end - begin, static_cast<std::uint64_t>(parameter.elements()) * 4);
    std::vector<float> values(static_cast<std::size_t>(parameter.elements()));
    std::memcpy(values.data(), bytes.data() + 8 + length + begin, end - begin);
    TestValues expected("master", parameter.name, 7);
    for (std::int64_t i = 0; i < parameter.elements(); i += 97) ASSERT_EQ(values[i], expected(i)) << parameter.name;
  }
}

TEST(Commands, DumpThatCannotBeWrittenLeavesNothing) {
  test::TemporaryFolder folder;
  TestWorld(test_config(1, 1), folder.path()).checkpoint(7);
  Ran ran = run({"dump", folder.path(), "--to", folder.path() + "/none/model.safetensors"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, testing::HasSubstr("none/model.safetensors"));
}

TEST(Commands, DumpReplacesAFileOnlyWhenForced) {
  test::TemporaryFolder folder;
  TestWorld(test_config(1, 1), folder.path()).checkpoint(7);
  std::string file = folder.path() + "/model.safetensors";
  std::ofstream(file) << "keep me";
  Ran ran = run({"dump", folder.path(), "--to", file});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, testing::HasSubstr("--to " + file + ": that file is there already"));
  EXPECT_EQ(os::read_file(file), "keep me");
  EXPECT_EQ(run({"dump", folder.path(), "--to", file, "--force"}).code, 0);
  EXPECT_GT(std::filesystem::file_size(file), 1000u);
}

TEST(Commands, WhatIsNoFileIsNotReplacedByADump) {
  test::TemporaryFolder folder;
  TestWorld(test_config(1, 1), folder.path()).checkpoint(7);
  std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Ran ran = run({"dump", folder.path(), "--to", pipe});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, testing::HasSubstr("--to " + pipe + ": that is no file"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(List, WorksWhileCheckpointsComeAndGo) {
  test::TemporaryFolder folder;
  TestWorld world(test_config(1, 1), folder.path());
  world.checkpoint(1);
  std::atomic<bool> done{false};
  std::string failure;
  int looked = 0;
  std::thread reader([&] {
    while (!done) {
      try {
        auto listed = list_checkpoints(folder.path());
        if (listed.empty()) failure = "the list was empty";
        ++looked;
      } catch (const Error& error) {
        failure = error.what();
      }
    }
  });
  for (std::uint64_t step = 2; step < 20; ++step) world.checkpoint(step);
  done = true;
  reader.join();
  EXPECT_EQ(failure, "");
  EXPECT_GT(looked, 0);
}

TEST(Key, IsReadBackAndSortsByElement) {
  Key key{"master", "model.layers.3.mlp.experts.5.gate_proj.weight", 123456};
  EXPECT_EQ(decode(encode(key)), key);
  EXPECT_LT(encode({"master", "w", 99}), encode({"master", "w", 100}));
  for (const char* bad : {"", "master", "master/w", "master/w/12", "/w/0000000000000000", "master/w/000000000000000x",
                          "master//0000000000000000", "~part"}) {
    EXPECT_FALSE(decode(bad)) << bad;
  }
  EXPECT_EQ(family_step(family_name(42)), 42u);
  EXPECT_FALSE(family_step("default"));
}

TEST(ValuePlan, CoversEveryOwnedElementOnceWithinTheBound) {
  placement::Placement placement = placement::build(test_config(3, 1), 1);
  std::int64_t most = 2 * placement::chunk_elements, planned = 0, owned = 0;
  for (const PlannedValue& value : plan_values(placement, most)) {
    EXPECT_LE(value.count, most);
    std::int64_t next = value.first;
    for (int chunk : value.chunks) {
      EXPECT_EQ(placement.chunks[chunk].first, next);
      next += placement.chunks[chunk].count;
    }
    planned += value.count;
  }
  for (const placement::OwnedRange& range : placement.owned) owned += range.count;
  EXPECT_EQ(planned, owned);
}

}  // namespace
}  // namespace ganymede::checkpoint
