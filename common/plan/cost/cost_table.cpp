#include "common/plan/cost/cost_table.h"

#include <algorithm>
#include <cmath>

#include "common/placement/matrices.h"
#include "common/plan/cost/ctas.h"
#include "common/plan/cost/flops.h"

namespace ganymede::plan {
namespace {

/// Milliseconds of `bytes` at `gb_per_second`.
double transfer_ms(double bytes, double gb_per_second) { return bytes / gb_per_second / 1e6; }

/// One operation after another, for one rank of one machine.
class Costs {
 public:
  Costs(const config::Config& config, const placement::Placement& placement, const TrafficChoices& choices,
        const Hardware& hardware)
      : config_(config),
        placement_(placement),
        choices_(choices),
        hardware_(hardware),
        flops_(config),
        sharing_(node_ranks(config, placement.rank)),
        element_(config.compute.dtype == config::Dtype::bf16 ? 2 : 4),
        expert_share_(config.model.experts == 0 ? 1
                                                : static_cast<double>(placement.local_experts) *
                                                      placement.expert_group / config.model.experts) {
    for (const placement::Bucket& bucket : placement.buckets) {
      bool head = bucket.kind == model_spec::BucketKind::head;
      bool embed = bucket.kind == model_spec::BucketKind::embed;
      if (bucket.kind == model_spec::BucketKind::experts)
        experts_[static_cast<std::size_t>(bucket.layer)] = static_cast<double>(bucket.elements);
      elements_[static_cast<std::size_t>(head    ? config.model.layers + 1
                                         : embed ? 0
                                                 : bucket.layer + 1)] += static_cast<double>(bucket.elements);
    }
  }

  double of(const Operation& operation) const;

 private:
  double compute(const Operation& operation) const;
  double embedding(const Operation& operation) const;
  double flops_ms(const ForwardFlops& flops) const;
  double exchange_ms(const Operation& operation) const;
  double elements(const Operation& operation) const;
  double link_ms(OperationKind kind, const Moved& moved, std::size_t members) const;
  double orthogonalise_ms(int bucket) const;
  double host_copy(double bytes) const;
  double device(double bytes) const {
    return transfer_ms(bytes, hardware_.memory.device_gb_per_second / (hardware_.memory.shared ? sharing_ : 1));
  }
  double host(double bytes) const {
    return transfer_ms(bytes, hardware_.memory.host_gb_per_second / (hardware_.memory.shared ? sharing_ : 1));
  }

  const config::Config& config_;
  const placement::Placement& placement_;
  const TrafficChoices& choices_;
  const Hardware& hardware_;
  FlopCount flops_;
  std::vector<placement::BucketMatrices> matrices_ = placement::matrices_of(placement_);
  OperationTraffic traffic_{config_, placement_, choices_};
  double sharing_, element_;
  double expert_share_;  // of the rows that a rank has when all places hold as many experts
  std::vector<double> elements_ = std::vector<double>(static_cast<std::size_t>(config_.model.layers) + 2, 0.0);
  std::vector<double> experts_ = std::vector<double>(static_cast<std::size_t>(config_.model.layers), 0.0);  // of these
};

double Costs::flops_ms(const ForwardFlops& flops) const {
  const Hardware::Compute& c = hardware_.compute;
  double peak = (config_.compute.dtype == config::Dtype::bf16 ? c.bf16_gflops : c.fp32_gflops) * 1e6;  // per ms
  if (c.shared) peak /= sharing_;
  return flops.products / (peak * c.product_efficiency) + flops.experts / (peak * c.expert_efficiency) +
         flops.attention / (peak * c.attention_efficiency);
}

/// A look-up forward; backward clears the gradient with the first row and adds rows of it.
double Costs::embedding(const Operation& operation) const {
  double row = static_cast<double>(config_.data.seq_len) * config_.model.hidden;
  if (operation.kind == OperationKind::forward) return device(2 * row * element_);
  return device(row * (element_ + 8) + (operation.row == 0 ? elements_[0] * 4 : 0));
}

/// Parameters of the operation's part of its layer.
double Costs::elements(const Operation& operation) const {
  double all = elements_[static_cast<std::size_t>(operation.layer) + 1];
  if (operation.part == Part::whole) return all;
  double experts = experts_[static_cast<std::size_t>(operation.layer)];
  return operation.part == Part::experts ? experts : all - experts;
}

double Costs::compute(const Operation& operation) const {
  if (operation.layer < 0) return embedding(operation);
  bool backward = operation.kind == OperationKind::backward;
  // The head's backward computes its forward too: logits are never kept.
  double passes = !backward ? 1 : operation.layer == config_.model.layers ? 3 : 2;
  double parameters = elements(operation);
  double written = backward ? parameters * 4 * (operation.row > 0 ? 3 : 1) : 0;
  ForwardFlops flops = flops_.forward(operation.layer);
  flops.experts *= operation.part == Part::attention ? 0 : expert_share_;
  if (operation.part == Part::experts) flops.products = flops.attention = 0;
  return std::max(passes * flops_ms(flops), device(parameters * element_ * passes + written));
}

/// What travels, all inside the node; and the sum over places reads and writes it once more.
double Costs::exchange_ms(const Operation& operation) const {
  double summed = operation.kind == OperationKind::combine ? 2 * static_cast<double>(operation.bytes) : 0;
  return link_ms(operation.kind, {operation.bytes, 0}, static_cast<std::size_t>(placement_.expert_group)) +
         device(summed);
}

/// Newton–Schulz of five steps in its standard form, with sides n ≤ m: two products of n²·m and one of n³ each.
double Costs::orthogonalise_ms(int bucket) const {
  const placement::BucketMatrices& matrices = matrices_[static_cast<std::size_t>(bucket)];
  double flops = 0;
  for (const placement::Matrix& matrix : matrices.matrices) {
    if (matrix.owner != placement_.buckets[static_cast<std::size_t>(bucket)].index_in_group) continue;
    auto [least, most] = std::minmax<double>({static_cast<double>(matrix.rows), static_cast<double>(matrix.columns)});
    flops += 5 * (4 * least * least * most + 2 * least * least * least);
  }
  const Hardware::Compute& c = hardware_.compute;
  double peak = (config_.newton_schulz.dtype == config::Dtype::bf16 ? c.bf16_gflops : c.fp32_gflops) * 1e6;
  return flops / (peak / (c.shared ? sharing_ : 1) * c.product_efficiency);
}

double Costs::link_ms(OperationKind kind, const Moved& moved, std::size_t members) const {
  double most = most_gb_per_second(kind, config_, hardware_);
  auto ms = [&](const Hardware::Link& link, std::int64_t bytes) {
    if (bytes == 0) return 0.0;
    double doublings = std::ceil(std::log2(static_cast<double>(members)));
    double rate = std::min(most, link.gb_per_second / (link.shared ? sharing_ : 1));
    return transfer_ms(static_cast<double>(bytes), rate) + doublings * link.latency_us / 1e3;
  };
  return ms(hardware_.node, moved.inside) + ms(hardware_.network, moved.between);
}

double Costs::host_copy(double bytes) const {
  if (hardware_.host_link.gb_per_second == 0) return host(2 * bytes);
  return transfer_ms(bytes, hardware_.host_link.gb_per_second) + hardware_.host_link.latency_us / 1e3;
}

double Costs::of(const Operation& operation) const {
  static const placement::Bucket none{};
  const placement::Bucket& bucket = operation.bucket < 0 ? none : placement_.buckets[operation.bucket];
  double shard = operation.bucket < 0 ? 0 : static_cast<double>(bucket.shard_elements()) * 4;
  double fixed = hardware_.compute.operation_us / 1e3;
  Moved moved = traffic_.of(operation);
  switch (operation.kind) {
    case OperationKind::forward:
    case OperationKind::recompute:
    case OperationKind::backward:
      return fixed + compute(operation);
    case OperationKind::dispatch:
    case OperationKind::combine:
      return fixed + exchange_ms(operation);
    case OperationKind::gather:
      return moved.all() == 0 ? 0 : fixed + link_ms(operation.kind, moved, bucket.group.size());
    case OperationKind::reshard:
      return fixed + device(2 * static_cast<double>(operation.bytes));
    case OperationKind::regather:
      return fixed + link_ms(operation.kind, moved, node_share(config_, placement_, bucket, 0).members.size());
    case OperationKind::reduce: {
      if (moved.all() == 0) return 0;
      double parts = static_cast<double>(bucket.group.size()) + 1;  // read, and the sum written
      return fixed + link_ms(operation.kind, moved, bucket.group.size()) + device(shard * parts);
    }
    case OperationKind::accumulate:
      return fixed + device(3 * static_cast<double>(operation.bytes));
    case OperationKind::replica_reduce:
      return fixed + link_ms(operation.kind, moved, static_cast<std::size_t>(placement_.replicas)) + device(2 * shard);
    case OperationKind::store_gradients:
      return hardware_.host_link.gb_per_second == 0 ? 0 : fixed + host_copy(shard);
    case OperationKind::update_send:
    case OperationKind::update_return:
      return fixed + link_ms(operation.kind, moved, bucket.group.size()) +
             host(2 * static_cast<double>(operation.bytes));
    case OperationKind::orthogonalise:
      return fixed + orthogonalise_ms(operation.bucket);
    case OperationKind::accumulate_norm:
      return fixed + device(shard);
    case OperationKind::offload:
    case OperationKind::prefetch:
      return fixed + host_copy(static_cast<double>(operation.bytes));
    case OperationKind::vote: {
      bool far = node_ranks(config_, placement_.rank) < placement_.world;
      return placement_.world == 1
                 ? 0
                 : link_ms(operation.kind, {far ? 0 : 1, far ? 1 : 0}, static_cast<std::size_t>(placement_.world));
    }
    case OperationKind::wait_batch:
    case OperationKind::release:
    case OperationKind::decide:
    case OperationKind::wait_update:
      return 0;
  }
  return 0;
}

}  // namespace

Moved OperationTraffic::of(const Operation& operation) const {
  if (operation.kind == OperationKind::dispatch || operation.kind == OperationKind::combine)
    return {operation.bytes, 0};
  if (operation.bucket < 0) return {};
  auto index = static_cast<std::size_t>(operation.bucket);
  const placement::Bucket& bucket = placement_.buckets[index];
  switch (operation.kind) {
    case OperationKind::gather:
      return gather_traffic(config_, placement_, bucket, choices_);
    case OperationKind::regather:
      return regather_in_node_traffic(config_, placement_, bucket, choices_);
    case OperationKind::reduce:
      return reduce_traffic(config_, placement_, bucket, choices_);
    case OperationKind::replica_reduce:
      return replica_traffic(config_, placement_, bucket);
    case OperationKind::update_send:
      return update_traffic(config_, bucket, matrices_[index]).send;
    case OperationKind::update_return:
      return update_traffic(config_, bucket, matrices_[index]).bring_back;
    default:
      return {};
  }
}

std::vector<double> hardware_durations(const StepPlan& plan, const config::Config& config,
                                       const placement::Placement& placement, const TrafficChoices& choices,
                                       const Hardware& hardware) {
  Costs costs(config, placement, choices, hardware);
  std::vector<double> durations;
  durations.reserve(plan.operations.size());
  for (const Operation& operation : plan.operations) durations.push_back(costs.of(operation));
  return durations;
}

std::vector<Link> links_of(const std::vector<Moved>& sent) {
  std::vector<Link> links;
  links.reserve(sent.size());
  for (const Moved& moved : sent)
    links.push_back(moved.between > 0 ? Link::between_nodes : moved.inside > 0 ? Link::inside_node : Link::none);
  return links;
}

}  // namespace ganymede::plan
