#include <algorithm>
#include <iterator>

#include "common/base/log.h"
#include "common/base/text.h"
#include "launcher/supervisor/node_restarts.h"
#include "launcher/supervisor/supervisor.h"

/// The part of the supervisor that deals with the launchers of other nodes.
namespace ganymede::launcher {
namespace {

constexpr double silence = 2;      // seconds in which the other nodes come without a word about them
constexpr double order_life = 10;  // seconds in which a node learns of an order to restart a service

}  // namespace

coordinator::NodeWishes Supervisor::report(coordinator::NodeState state) {
  int node = state.node;
  std::optional<std::uint64_t> generation;
  auto cells = state.cells;
  auto parts = state.parts;
  const coordinator::NodeState* before = nodes_.state_of(node);
  std::vector<std::string> news;
  if (before != nullptr) {
    news = restarts_since(*before, state, nodes_.name(node));
    std::ranges::move(refusals_since(*before, state, nodes_.name(node)), std::back_inserter(news));
  }
  for (int rank : nodes_.take(std::move(state), now_seconds())) {
    if (auto next = membership_.worker_died(rank)) generation = next;
  }
  for (const std::string& line : news) {
    log::warn("{}", line);
    parts_.terminal.line(line);
  }
  for (const auto& cell : cells)
    if (cell.present) membership_.worker_registered(cell.rank);
  for (const auto& part : parts)
    if (!last_committed_ || part.step > *last_committed_)
      checkpoint_parts_.report(part.step, part.rank, part.bytes, part.hash);
  if (phase_ == Phase::working) announce(generation);
  note_restarts();
  if (nodes_.any_worker_finished()) note_leaving();
  double now = now_seconds();
  if (phase_ == Phase::working) watch_nodes(now);
  if (phase_ == Phase::rescuing) watch_rescue(now);
  if (is_ending()) consider_over();
  return wishes(node, now);
}

void Supervisor::refused(const std::string& why) {
  std::string line = fmt::format("a node was refused: {}", why);
  log::warn("{}", line);
  parts_.terminal.line(line);
}

void Supervisor::say_who_is_awaited(double now) {
  if (now - began_ < silence) return;
  std::string names;
  for (int node : nodes_.missing()) names += (names.empty() ? "" : ", ") + nodes_.name(node);
  if (names == awaited_) return;
  awaited_ = names;
  if (!names.empty()) parts_.terminal.line(fmt::format("waiting for {}", names));
}

void Supervisor::watch_nodes(double now) {
  say_who_is_awaited(now);
  const auto* failed = nodes_.failed();
  if (failed && exit_code_of(failed->exit_code) == ExitCode::can_go_on)
    return form_again(nodes_.name(failed->node) + ": " + failed->failure, {}, 0);
  if (failed) return halt({exit_code_of(failed->exit_code), nodes_.name(failed->node) + ": " + failed->failure}, false);
  if (nodes_.stop_wish() == coordinator::StopWish::now) return stop_now();
  if (nodes_.stop_wish() == coordinator::StopWish::after_step) stop();
  const auto& launch = parts_.config.launch;
  // After a restart of this launcher all nodes have been there before.
  auto silent = nodes_.silent(now, launch.node_timeout_seconds,
                              resumed_ ? launch.node_timeout_seconds : launch.node_start_seconds);
  if (!silent) return;
  std::string text = silent->came
                         ? fmt::format("The launcher of {} has not answered for {} (launch.node_timeout_seconds).",
                                       silent->name, human_seconds(silent->seconds))
                         : fmt::format("The launcher of {} did not come within {} (launch.node_start_seconds).",
                                       silent->name, human_seconds(silent->seconds));
  if (nodes_.elastic()) return form_again(text, {silent->node}, silent->seconds);
  std::string way_out = silent->came ? "The same command on all nodes goes on from the last checkpoint."
                                     : fmt::format("Start it with the same command and --node {}.", silent->node);
  halt({ExitCode::can_go_on, text + " " + way_out}, false);
}

/// Of a node that has not reported to this launcher yet nothing is known.
std::vector<std::optional<coordinator::EpochProgress>> Supervisor::epochs_elsewhere() const {
  std::vector<std::optional<coordinator::EpochProgress>> all(static_cast<std::size_t>(nodes_.count()));
  std::size_t next = 0;
  for (const coordinator::NodeState& state : nodes_.states()) all[next++] = state.epoch;
  return all;
}

coordinator::NodeWishes Supervisor::wishes(int node, double now) {
  coordinator::NodeWishes wishes;
  wishes.generation = membership_.generation();
  wishes.leaving = first_left_ > 0;
  if (phase_ == Phase::rescuing) {
    wishes.phase = coordinator::Phase::rescuing;
    if (!std::ranges::count(rescue_->lost, node)) wishes.rescue = rescue_->order;
  }
  if (phase_ == Phase::finishing) wishes.phase = coordinator::Phase::finishing;
  if (phase_ == Phase::halting) wishes.phase = hard_ ? coordinator::Phase::killing : coordinator::Phase::halting;
  if (outcome_.again) wishes.phase = coordinator::Phase::reforming;
  wishes.exit_code = static_cast<int>(outcome_.code);
  wishes.text = outcome_.text;
  wishes.change = changes_.prepared();
  wishes.epoch = swap_.wish();
  if (now - stacks_ordered_ < order_life) wishes.stacks = stacks_order_;
  for (const auto& [order, given] : orders_)
    if (nodes_.node_of(order.rank) == node && now - given < order_life) wishes.restarts.push_back(order);
  return wishes;
}

}  // namespace ganymede::launcher
