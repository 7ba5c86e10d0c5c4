#include "launcher/supervisor/node_epoch.h"

#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/os/files.h"
#include "common/os/process.h"
#include "launcher/supervisor/log_tail.h"
#include "launcher/supervisor/memory_estimate.h"
#include "launcher/supervisor/segment_memory.h"

namespace ganymede::launcher {
namespace {

constexpr double prepare_seconds = 60;
constexpr auto look_every = std::chrono::milliseconds(20);

/// Runs in a thread of its own: the program ends before it does.
std::string run_to_end(os::Command command) {
  os::Child child = os::spawn(command);
  Deadline deadline = Deadline::after_seconds(prepare_seconds);
  while (true) {
    if (auto ending = os::poll_ending(child)) {
      std::string text = os::read_file(command.output_file);
      if (ending->exit_code == 0) return text;
      auto lines = last_lines(text, 1);
      fail("The optimizer plugin cannot be prepared on this node: {}", lines.empty() ? ending->describe() : lines[0]);
    }
    if (deadline.passed()) os::send_signal(child, SIGKILL);
    std::this_thread::sleep_for(look_every);
  }
}

/// Copies the plugins of the epoch into this node's run directory. They have to be those of node 0.
void copy_plugins(const std::string& programs, const std::string& run, const std::string& configuration,
                  const std::vector<service::JobPlugin>& wanted) {
  os::Command command;
  command.arguments = {programs + "/ganymede-optimizer", "swap", "--run", run, "--config", configuration};
  command.output_file = fmt::format("{}/swap.out", service::log_folder);
  nlohmann::json told = nlohmann::json::parse(run_to_end(command), nullptr, false);
  if (!told.is_object()) fail("What ganymede-optimizer swap printed is not understood: are the programs of one build?");
  for (const service::JobPlugin& one : wanted) {
    std::string hash = fmt::format("{:016x}", one.hash);
    bool same = std::ranges::any_of(told["plugins"], [&](const auto& plugin) { return plugin["hash"] == hash; });
    if (!same)
      fail("This node has another optimizer plugin '{}' than node 0: install the same file on all nodes.",
           one.facts.name);
  }
}

}  // namespace

NodeEpoch::NodeEpoch(Parts parts) : parts_(std::move(parts)), crew_(parts_.crew) {
  std::uint64_t next = parts_.crew.epochs.next();
  step_protocol::Setting prepared = parts_.crew.cells.prepared_change();
  if (next != 0 && prepared.state_epoch == next) {
    crew_.go_on(next, prepared.number);
  } else {
    crew_.drop();  // the coordinator says what is wished now
  }
}

void NodeEpoch::obey(const coordinator::NodeWishes& wishes) {
  auto own = crew_.progress();
  if (!wishes.epoch) return end();
  if (own && own->epoch == wishes.epoch->epoch) {
    if (wishes.change && wishes.change->state_epoch == own->epoch) crew_.offered(wishes.change->number);
    return;
  }
  if (own || parts_.crew.epochs.next() != 0) return end();  // first what is left of another
  begin(*wishes.epoch);
}

void NodeEpoch::begin(const coordinator::EpochOrder& order) {
  parts_.crew.epochs.add(order.epoch, order.configuration, order.plugins);
  config::Config config = parts_.crew.epochs.config_of(order.epoch);
  service::JobEpoch epoch = parts_.crew.epochs.of(order.epoch);
  coordinator::RankRange ranks = parts_.crew.cells.ranks();
  crew_.begin(order.epoch, [parts = parts_.programs, run = parts_.run, budget = parts_.budget, config, epoch, ranks] {
    os::Machine machine = os::inspect_machine();
    HostBudget needed = estimate_epoch_memory(config, epoch, ranks, budget, machine);
    place_on_nodes(needed, nodes_of_cells(config, ranks.count, machine), os::memory_of_nodes());
    std::string why = why_no_swap_fits(needed, [] { return std::vector<os::MemoryHolder>(); });
    if (!why.empty()) throw Error(ExitCode::failed, why);
    copy_plugins(parts, run, epoch.config, epoch.plugins);
  });
}

/// Nobody wishes an epoch any more: it is in force everywhere, or nowhere.
void NodeEpoch::end() {
  auto own = crew_.progress();
  if (!own) return;
  if (own->stage == coordinator::EpochStage::past) {
    crew_.settle();
    return os::write_file_atomically(service::config_file, os::read_file(parts_.crew.epochs.of(own->epoch).config));
  }
  const auto& ranks = parts_.crew.cells.ranks();
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank)
    if (parts_.crew.cells.epoch_in_force(rank) == own->epoch) return;
  crew_.drop();
}

}  // namespace ganymede::launcher
