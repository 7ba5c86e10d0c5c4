#include "common/plan/exchange_form.h"

#include <algorithm>
#include <cmath>

namespace ganymede::plan {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

/// The chance that a place has none of a token's experts when all choices are equally likely.
double missed(const config::Model& model, int places) {
  double chance = 1;
  for (int i = 0; i < model.top_k; ++i) {
    chance *= std::max(0.0, model.experts - static_cast<double>(model.experts) / places - i) / (model.experts - i);
  }
  return chance;
}

}  // namespace

ExchangeForm exchange_form(const config::Config& config) {
  ExchangeForm form;
  form.places = config.model.experts > 0 ? config.parallel.expert_group : 1;
  form.even = form.places > 1 && config.model.router_groups % form.places == 0 &&
              config.expert_exchange == config::ExpertExchange::automatic;
  form.tokens = config.data.seq_len;
  form.hidden = config.model.hidden;
  form.top_k = config.model.top_k;
  form.element = config.compute.dtype == config::Dtype::bf16 ? 2 : 4;
  return form;
}

TravelLayout travel_layout(const ExchangeForm& form, Travel travel, bool backward) {
  TravelLayout layout;
  bool few = travel == Travel::own || travel == Travel::combined;  // this rank's
  bool most = travel == Travel::received || travel == Travel::results || travel == Travel::gradients;
  bool sum = travel == Travel::returned && form.even;
  layout.rows = few || sum ? form.tokens : most ? form.received() : form.sent();
  layout.fp32 = sum;
  if (travel == Travel::own || travel == Travel::staged || travel == Travel::received) layout.with = 2 * form.top_k;
  if (travel == Travel::gradients || travel == Travel::combined) layout.with = form.top_k;
  if (travel == Travel::returned && backward && !form.even) layout.with = form.top_k;
  layout.with_offset = aligned(layout.rows * form.hidden * (sum ? 4 : form.element));
  layout.bytes = layout.with_offset + aligned(layout.rows * layout.with * 4);
  return layout;
}

bool travels(const config::Config& config, int layer) {
  return exchange_form(config).travels() && layer >= config.model.dense_layers && layer < config.model.layers;
}

bool keeps_received(const config::Config& config) {
  return exchange_form(config).even && config.recompute == config::Recompute::none;
}

ExchangeBytes exchange_bytes(const config::Config& config) {
  ExchangeForm form = exchange_form(config);
  if (!form.travels()) return {};
  auto others = static_cast<double>(form.tokens) * (form.places - 1);
  if (!form.even) others *= 1 - missed(config.model, form.places);
  std::int64_t counts = form.even ? 0 : std::int64_t{8} * (form.places - 1);
  std::int64_t rows = std::llround(others * static_cast<double>(form.hidden * form.element));
  std::int64_t choices = std::llround(others * static_cast<double>(form.top_k * 8));  // an index and a weight each
  std::int64_t weights = std::llround(others * static_cast<double>(form.top_k * 4));
  std::int64_t again = keeps_received(config) ? 0 : rows + choices + counts;
  return {rows + choices + counts, rows, again + rows, rows + weights};
}

}  // namespace ganymede::plan
