#include "tests/unit/engine/test_world.h"

#include <algorithm>
#include <exception>
#include <functional>

#include "common/collectives/composed.h"
#include "common/collectives/pairwise_link.h"
#include "common/plan/traffic.h"
#include "tests/unit/engine/on_ranks.h"

namespace ganymede::worker {
namespace {

/// Runs `body(rank)` on a thread a rank; rethrows the first exception.
void on_all(int ranks, const std::function<void(int)>& body) {
  for (const auto& fault : on_ranks(ranks, body)) {
    if (fault) std::rethrow_exception(fault);
  }
}

/// By topology.ranks_per_node composed of what goes inside a node and between nodes, as in a run.
std::unique_ptr<collectives::Communicator> make_communicator(const config::Config& config, collectives::Group group,
                                                             const std::shared_ptr<ThreadPost>& post) {
  for (int rank : group.ranks) group.nodes.push_back(plan::node_of(config, rank));
  int node = plan::node_of(config, group.rank);
  if (group.nodes.front() == group.nodes.back()) return make_thread_communicator(group, post);
  collectives::Group inside = group;
  inside.name += fmt::format(".node{}", node);
  std::erase_if(inside.ranks, [&](int rank) { return plan::node_of(config, rank) != node; });
  inside.nodes.clear();
  collectives::Links links;
  links.between = make_thread_communicator(group, post);
  if (inside.ranks.size() > 1) links.inside = collectives::make_pairwise_link(make_thread_communicator(inside, post));
  return collectives::make_composed(group, std::move(links));
}

}  // namespace

double loss(const StepResult& result) {
  return result.record.loss_sum / static_cast<double>(result.record.loss_tokens);
}

TestWorld::TestWorld(const config::Config& config, const std::vector<placement::OptimizerFacts>& facts) {
  for (int rank = 0; rank < config.parallel.ranks; ++rank) {
    Rank made;
    made.cell = std::make_unique<TestCell>(config, rank, facts);
    made.cell->serve_validation();
    made.communicators = std::make_unique<Communicators>(
        config, made.cell->placement(), 20,
        [&](const collectives::Group& group) { return make_communicator(config, group, post_); });
    made.engine = std::make_unique<Engine>(*made.cell, *made.communicators, 1, 42);
    ranks_.push_back(std::move(made));
  }
}

StepResult TestWorld::step(std::uint64_t number) {
  std::vector<StepResult> results(ranks_.size());
  on_all(size(), [&](int rank) {
    cell(rank).serve(number);
    results[rank] = engine(rank).train(number);
  });
  for (Rank& rank : ranks_) rank.cell->update(number);
  return results[0];
}

std::vector<double> TestWorld::losses(int steps) {
  std::vector<double> found;
  for (int s = 1; s <= steps; ++s) found.push_back(loss(step(s)));
  return found;
}

plan::Moved TestWorld::moved(int rank, const std::string& operation) {
  plan::Moved sum;
  for (const TrafficLine& line : ranks_.at(rank).communicators->traffic()) {
    if (line.operation != operation) continue;
    sum += {static_cast<std::int64_t>(line.inside), static_cast<std::int64_t>(line.between)};
  }
  return sum;
}

double TestWorld::validate(std::uint64_t number) {
  std::vector<double> found(ranks_.size());
  on_all(size(), [&](int rank) { found[rank] = engine(rank).validate(number); });
  return found[0];
}

std::map<std::string, std::vector<float>> TestWorld::whole(bool gradients) {
  std::map<std::string, std::vector<float>> all;
  for (Rank& rank : ranks_) {
    const placement::Placement& placement = rank.cell->placement();
    std::span<float> values = gradients ? rank.cell->gradients() : rank.cell->master();
    for (const placement::OwnedRange& range : placement.owned) {
      const auto& parameter = placement.parameters[range.parameter];
      auto& whole = all[parameter.name];
      whole.resize(static_cast<std::size_t>(parameter.elements()));
      std::copy_n(values.begin() + range.shard_offset, range.count, whole.begin() + range.first);
    }
  }
  return all;
}

std::map<std::string, std::vector<float>> TestWorld::parameters() { return whole(false); }
std::map<std::string, std::vector<float>> TestWorld::gradients() { return whole(true); }

}  // namespace ganymede::worker
