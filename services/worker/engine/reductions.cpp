#include "services/worker/engine/reductions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/step_protocol/change.h"
#include "services/worker/model/attention.h"

namespace ganymede::worker {
namespace {

using placement::Reduction;
using placement::ReductionKind;

constexpr std::size_t slice =
    16 * 1024;  // elements of a rank that travel at once, so that what comes from all is small

void add_epoch(service::Context& context, std::uint64_t epoch, std::vector<EpochReductions>& all) {
  const placement::Reductions& layout = context.placement_of(epoch).reductions;
  if (layout.elements > 0) all.push_back({epoch, &layout, service::epoch_control(context, epoch).reductions, {}});
}

std::uint64_t swap_epoch(service::Context& context, const step_protocol::DecisionRecord& record) {
  return step_protocol::setting_of(*context.control().block, record.swap_change).state_epoch;
}

/// From what this rank has of `all` those elements, and what every other has, in rank order.
void join(std::span<double> values, std::size_t maxima, collectives::Communicator& control,
          Surroundings& surroundings) {
  auto ranks = static_cast<std::size_t>(control.size());
  std::vector<double> all(values.size() * ranks);
  std::vector<std::size_t> offsets(ranks + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * values.size_bytes();
  surroundings.wait(control.all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all)), offsets));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = all[i];
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      double other = all[rank * values.size() + i];
      values[i] = i < maxima ? model::larger(values[i], other) : values[i] + other;
    }
  }
}

}  // namespace

std::vector<EpochReductions> reductions_under(service::Context& context, const step_protocol::DecisionRecord& record) {
  std::vector<EpochReductions> all;
  add_epoch(context, record.state_epoch, all);
  bool followed = record.swap_change != 0 && record.step != record.swap_step;
  if (followed) add_epoch(context, swap_epoch(context, record), all);
  return all;
}

float* StepReductions::logits_of(int layer, int heads) {
  return logits.empty() ? nullptr : logits.data() + static_cast<std::ptrdiff_t>(layer) * heads;
}

bool StepReductions::has_non_finite_logit() const {
  return std::ranges::any_of(logits, [](float logit) { return std::isnan(logit); });
}

void StepReductions::reduce(collectives::Communicator& control, Surroundings& surroundings) {
  for (EpochReductions& epoch : epochs) {
    epoch.values.resize(static_cast<std::size_t>(epoch.layout->elements));
    for (const Reduction& part : epoch.layout->parts) {
      double* to = epoch.values.data() + part.first;
      if (part.kind == ReductionKind::attention_logit)
        std::copy_n(logits_of(part.layer, static_cast<int>(part.count)), part.count, to);
      else
        *to = squares[static_cast<std::size_t>(part.parameter)];
    }
    auto maxima = static_cast<std::size_t>(epoch.layout->maxima);
    for (std::size_t first = 0; first < epoch.values.size(); first += slice) {
      std::size_t count = std::min(slice, epoch.values.size() - first);
      join(std::span(epoch.values).subspan(first, count), maxima - std::min(maxima, first), control, surroundings);
    }
  }
}

double largest_logit(service::Context& context, const step_protocol::DecisionRecord& record) {
  double largest = -std::numeric_limits<double>::infinity();
  bool asked = false;
  for (const EpochReductions& epoch : reductions_under(context, record)) {
    asked = asked || epoch.layout->maxima > 0;
    for (double logit : epoch.shared.first(static_cast<std::size_t>(epoch.layout->maxima)))
      largest = model::larger(largest, logit);
  }
  return asked ? largest : std::numeric_limits<double>::quiet_NaN();
}

StepReductions reductions_of_step(service::Context& context, std::uint64_t epoch,
                                  const step_protocol::DecisionRecord& previous) {
  StepReductions all;
  add_epoch(context, epoch, all.epochs);
  if (previous.swap_change != 0) add_epoch(context, swap_epoch(context, previous), all.epochs);
  auto asks_for = [&](ReductionKind kind) {
    return std::ranges::any_of(all.epochs, [kind](const EpochReductions& one) { return one.layout->asks_for(kind); });
  };
  const config::Model& model = context.config().model;
  if (asks_for(ReductionKind::attention_logit))
    all.logits.assign(static_cast<std::size_t>(model.layers) * static_cast<std::size_t>(model.heads),
                      -std::numeric_limits<float>::infinity());
  if (asks_for(ReductionKind::gradient_square)) all.squares.assign(context.placement_of(epoch).parameters.size(), 0);
  return all;
}

}  // namespace ganymede::worker
