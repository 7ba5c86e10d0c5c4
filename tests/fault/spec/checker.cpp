#include "tests/fault/spec/checker.h"

#include <regex>

#include "common/base/error.h"
#include "tests/support/process_wait.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::fault {
namespace {

constexpr int largest_depth = 2'000'000, most_megabytes = 4'000;

/// What matches the group of `pattern`; empty: nothing does.
std::string found(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : std::string();
}

std::string run(const std::string& command, double seconds) {
  test::Finished done = test::run_program({"/bin/sh", "-c", command}, seconds);
  if (done.exit_code != 0) fail("{} ended with exit code {}: {}", command, done.exit_code, done.output);
  return done.output;
}

}  // namespace

Finding check_model(const std::string& file, const std::vector<std::string>& macros) {
  test::TemporaryFolder folder;
  std::string defined;
  for (const std::string& macro : macros) defined += " -D" + macro;
  // No partial order reduction: it is of little use here, and not right for every use of "unless" and of `_pid`.
  run(fmt::format(
          "cd {} && {}{} -a {}/{} && {} -x c -w -O1 -DSAFETY -DNOREDUCE -DCOLLAPSE -DMEMLIM={} -o checker pan.c",
          folder.path(), SPIN_PROGRAM, defined, SPEC_FOLDER, file, CC_PROGRAM, most_megabytes),
      60);
  Finding finding;
  finding.output = run(fmt::format("cd {} && ./checker -m{}", folder.path(), largest_depth), 300);
  std::string errors = found(finding.output, "errors: ([0-9]+)");
  std::string states = found(finding.output, "([0-9]+) states, stored");
  bool cut = finding.output.find("Search not completed") != std::string::npos ||
             finding.output.find("max search depth too small") != std::string::npos;
  if (errors.empty() || states.empty() || (errors == "0" && cut)) fail("{}: not explored: {}", file, finding.output);
  finding.states = std::stoull(states);
  finding.violated = errors != "0";
  finding.violation = found(finding.output, "pan:[0-9]+: ([^\n]*)");
  return finding;
}

}  // namespace ganymede::fault
