#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/tree.h"
#include "tests/unit/data/workspace.h"

/// What the commands of ganymede-data say to a person and to other programs.
namespace ganymede::data {
namespace {

struct Said {
  int exit_code = -1;
  std::string text;  // stdout and stderr
};

Said run(const std::string& arguments, const std::string& input = "") {
  std::string command = fmt::format("printf %b '{}' | {}/ganymede-data {} 2>&1", input, GANYMEDE_BINARY_DIR, arguments);
  FILE* pipe = popen(command.c_str(), "r");
  Said said;
  char piece[4096];
  while (std::size_t n = std::fread(piece, 1, sizeof piece, pipe)) said.text.append(piece, n);
  int status = pclose(pipe);
  said.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return said;
}

class CommandLine : public Workspace {
 protected:
  CommandLine() {
    write_documents(60);
    pack(options());
  }
};

TEST_F(CommandLine, WrongUsageIsOneLineAndExitTwo) {
  const std::vector<std::string> wrong = {
      "",
      "nothing",
      "pack",
      "pack text",
      "pack /nowhere --to " + path("x"),
      "pack --to x --seq-len 0 text",
      "pack --to x --tokenizer bytes --train-tokenizer 400 text",
      "pack --to x --validation-fraction 2 text",
      "pack --config /nowhere.toml",
      fmt::format("pack --to {} --tokenizer {} {}", path("x"), path("text/0000.txt"), path("text")),
      fmt::format("pack --to {} --tokenizer {} {}", path("x"), path("missing.model"), path("text")),
      "inspect",
      "inspect /nowhere",
      "inspect " + path("text"),
      "inspect " + path("set") + " --row 100000",
      "encode /nowhere --text x",
      "rows " + path("set") + " --split x",
  };
  for (const std::string& arguments : wrong) {
    Said said = run(arguments);
    EXPECT_EQ(said.exit_code, 2) << arguments << ": " << said.text;
    EXPECT_EQ(std::count(said.text.begin(), said.text.end(), '\n'), 1) << arguments << ": " << said.text;
  }
}

TEST_F(CommandLine, HelpListsTheCommands) {
  Said said = run("--help");
  EXPECT_EQ(said.exit_code, 0);
  for (const char* word : {"pack", "check", "inspect", "encode", "decode", "rows"})
    EXPECT_NE(said.text.find(word), std::string::npos);
  EXPECT_EQ(run("pack --help").exit_code, 0);
}

TEST_F(CommandLine, PackAndInspectSayTheSameInJson) {
  Said packed = run(fmt::format("pack {} --to {} --json", path("text"), path("again")));
  ASSERT_EQ(packed.exit_code, 0) << packed.text;
  EXPECT_EQ(run(fmt::format("inspect {} --verify --json", path("again"))).text, packed.text);
  Said overview = run("inspect " + path("again"));
  EXPECT_NE(overview.text.find("documents   60"), std::string::npos) << overview.text;
  Said row = run("inspect " + path("again") + " --row 0");
  EXPECT_NE(row.text.find("tokens 0 to"), std::string::npos) << row.text;
  EXPECT_NE(run("rows " + path("again") + " --count 2").text.find("\"targets\":["), std::string::npos);
}

TEST_F(CommandLine, CheckTellsWhetherAPackedDatasetFitsARecipe) {
  std::string check = "check " + write("recipe.toml", "[data]\npath = \"" + path("set") + "\"\nseq_len = 32\n");
  EXPECT_NE(run(check).text.find(" fits the recipe: "), std::string::npos);
  std::string sources = fmt::format(" --set 'data.sources=[\"{}\"]'", path("text"));
  Said later = run(check + " --set data.path=" + path("later") + sources);
  EXPECT_EQ(later.exit_code, 0) << later.text;
  EXPECT_NE(later.text.find("on first use"), std::string::npos) << later.text;
  const std::pair<const char*, const char*> wrong[] = {{"data.seq_len=64", "data.seq_len is 64"},
                                                       {"data.tokenizer=train:400", "data.tokenizer is"},
                                                       {"data.path=nowhere", "nowhere (data.path) does not exist"},
                                                       {"data.path=", "names no dataset"}};
  for (const auto& [setting, part] : wrong) {
    Said said = run(fmt::format("{} --set model.vocabulary=512 --set {}", check, setting));
    EXPECT_EQ(said.exit_code, 2) << said.text;
    EXPECT_NE(said.text.find(part), std::string::npos) << said.text;
    EXPECT_EQ(std::count(said.text.begin(), said.text.end(), '\n'), 1) << said.text;
  }
}

TEST_F(CommandLine, ShownTextCannotReachTheTerminal) {
  write("odd/a.txt", "before \x1b[31m after");
  ASSERT_EQ(run(fmt::format("pack {} --to {} --validation-fraction 0", path("odd"), path("escapes"))).exit_code, 0);
  Said row = run("inspect " + path("escapes") + " --row 0");
  EXPECT_EQ(row.text.find('\x1b'), std::string::npos);
  EXPECT_NE(row.text.find("\\x1b[31m"), std::string::npos);
}

TEST_F(CommandLine, DecodeWritesEachTokenAsItComes) {
  int to_child[2], from_child[2];
  ASSERT_EQ(pipe2(to_child, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(from_child, O_CLOEXEC), 0);
  std::string set = path("set");
  pid_t pid = fork();
  if (pid == 0) {
    dup2(to_child[0], STDIN_FILENO);
    dup2(from_child[1], STDOUT_FILENO);
    execl(GANYMEDE_BINARY_DIR "/ganymede-data", "ganymede-data", "decode", set.c_str(), nullptr);
    _exit(127);
  }
  close(to_child[0]);
  close(from_child[1]);
  for (char letter : std::string("live")) {
    std::string line = fmt::format("{}\n", static_cast<int>(letter));
    ASSERT_EQ(::write(to_child[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    pollfd ready{from_child[0], POLLIN, 0};
    ASSERT_EQ(poll(&ready, 1, 30'000), 1) << "nothing came for a token";
    char got = 0;
    ASSERT_EQ(read(from_child[0], &got, 1), 1);
    EXPECT_EQ(got, letter);
  }
  close(to_child[1]);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  close(from_child[0]);
}

TEST_F(CommandLine, EncodeAndDecodeAreInverse) {
  EXPECT_EQ(run("encode " + path("set") + " --text Hi!").text, "72 105 33\n");
  EXPECT_EQ(run("encode " + path("set"), "Hi!").text, "72 105 33\n");
  EXPECT_EQ(run("decode " + path("set"), "72 105\\n33").text, "Hi!");
  for (const char* wrong : {"x", "-1", "256", "99999999999999"}) {
    Said said = run("decode " + path("set"), wrong);
    EXPECT_EQ(said.exit_code, 2) << said.text;
    EXPECT_EQ(std::count(said.text.begin(), said.text.end(), '\n'), 1) << said.text;
  }
}

TEST_F(CommandLine, ServiceOutsideARunIsOneError) {
  Said said = run("--run /nowhere --rank 0");
  EXPECT_EQ(said.exit_code, 1) << said.text;
  EXPECT_EQ(std::count(said.text.begin(), said.text.end(), '\n'), 1) << said.text;
}

}  // namespace
}  // namespace ganymede::data
