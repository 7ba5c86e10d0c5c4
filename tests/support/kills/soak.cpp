#include "tests/support/kills/soak.h"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "tests/support/process_wait.h"

namespace ganymede::test {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_without_a_step = 120;

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::uint64_t resident_bytes(int pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    if (words >> name >> kib && name == "RssAnon:") return kib << 10;
  }
  fail("Process {} is gone.", pid);
}

std::size_t open_descriptors(int pid) {
  std::error_code error;
  std::size_t count = 0;
  for (fs::directory_iterator at(fmt::format("/proc/{}/fd", pid), error), end; !error && at != end; at.increment(error))
    ++count;
  return count;
}

}  // namespace

Soak::Soak(NodesRun& run, int nodes, const SoakPlan& plan)
    : run_(run), nodes_(nodes), plan_(plan), random_(plan.seed) {}

/// Empty while the coordinator does not answer.
nlohmann::json Soak::status() {
  auto answer = run_.first().ganymede({"ctl", run_.folder(0), "status", "--json"});
  auto parsed = nlohmann::json::parse(answer.output, nullptr, false);
  return answer.exit_code == 0 && parsed.is_object() ? parsed : nlohmann::json::object();
}

std::vector<Soak::Victim> Soak::victims() {
  std::vector<Victim> all;
  nlohmann::json now = status();
  for (const auto& cell : now.value("cells", nlohmann::json::array()))
    for (const auto& [name, service] : cell["services"].items())
      if (int pid = service["pid"]; pid > 0) all.push_back({name, pid});
  for (const auto& launcher : now.value("launchers", nlohmann::json::array()))
    all.push_back({"launcher", launcher["pid"].get<int>()});
  return all;
}

void Soak::blow(const Victim& victim) {
  if (random_() % 3 > 0) {
    ++blows_["SIGKILL " + victim.name];
    ::kill(victim.pid, SIGKILL);
    return;
  }
  bool for_good = plan_.leave_stopped && random_() % 2 == 0;
  ++blows_[(for_good ? "SIGSTOP for good " : "SIGSTOP ") + victim.name];
  ::kill(victim.pid, SIGSTOP);
  if (for_good) return;
  sleep_seconds(1 + static_cast<double>(random_() % 2000) / 1e3);
  ::kill(victim.pid, SIGCONT);
}

void Soak::shake() {
  Deadline end = Deadline::after_seconds(plan_.seconds);
  std::uint64_t step = run_.first().last_step();
  Deadline stuck = Deadline::after_seconds(seconds_without_a_step * patience);
  while (!end.passed()) {
    sleep_seconds(plan_.pause * (0.5 + static_cast<double>(random_() % 1000) / 1e3));
    auto all = victims();
    if (!all.empty()) blow(all[random_() % all.size()]);
    if (std::uint64_t now = run_.first().last_step(); now > step) {
      step = now;
      stuck = Deadline::after_seconds(seconds_without_a_step * patience);
    }
    bool over = run_.first().leftovers().empty();
    if (stuck.passed() || over)
      fail("The run {} after step {}.\nNode 0 printed:\n{}\nNode 1 printed:\n{}", over ? "ended" : "does not get on",
           step, run_.output(0), run_.output(1));
  }
}

Holdings Soak::holdings() {
  wait_until([&] { return status().value("state", "") == "training"; }, 60, "the run trains");
  Holdings sum;
  nlohmann::json launchers = status()["launchers"];
  for (const auto& launcher : launchers) {
    int keeper = launcher["keeper_pid"];
    sum.descriptors += open_descriptors(keeper);
    sum.resident_bytes += resident_bytes(keeper);
  }
  for (int node = 0; node < nodes_; ++node) {
    auto answer = run_.first().ganymede({"ctl", run_.folder(node), "segments", "--json"});
    if (answer.exit_code != 0) fail("ctl segments of node {}: {}", node, answer.output);
    for (const auto& segment : nlohmann::json::parse(answer.output)) {
      ++sum.segments;
      sum.segment_bytes += segment["bytes"].get<std::uint64_t>();
    }
  }
  return sum;
}

}  // namespace ganymede::test
