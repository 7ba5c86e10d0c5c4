#include "common/plan/exchange_form.h"

#include <algorithm>
#include <cmath>

#include "common/placement/expert_range.h"

namespace ganymede::plan {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

/// The chance that a place has one of a token's experts when all choices are equally likely.
double visited(const config::Model& model, int places, int place) {
  int others = model.experts - placement::experts_of_place(model.experts, places, place).count;
  double missed = 1;
  for (int i = 0; i < model.top_k; ++i) missed *= std::max(0.0, static_cast<double>(others - i)) / (model.experts - i);
  return 1 - missed;
}

/// Rows that a place sends to all others, and that come to it from them.
struct Rows {
  double out = 0, in = 0;
};

Rows rows_between(const config::Config& config, const ExchangeForm& form, int place) {
  auto tokens = static_cast<double>(form.tokens);
  Rows rows;
  for (int other = 0; other < form.places; ++other) {
    if (other == place) continue;
    rows.out += tokens * (form.even ? 1 : visited(config.model, form.places, other));
    rows.in += tokens * (form.even ? 1 : visited(config.model, form.places, place));
  }
  return rows;
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

ExchangeBytes exchange_bytes(const config::Config& config, int place) {
  ExchangeForm form = exchange_form(config);
  if (!form.travels()) return {};
  Rows others = rows_between(config, form, place);
  auto bytes = [](double rows, std::int64_t of_row) { return std::llround(rows * static_cast<double>(of_row)); };
  std::int64_t counts = form.even ? 0 : std::int64_t{8} * (form.places - 1);
  std::int64_t row = form.hidden * form.element, sent = bytes(others.out, row), returned = bytes(others.in, row);
  std::int64_t choices = bytes(others.out, form.top_k * 8);  // an index and a weight each
  std::int64_t weights = bytes(others.in, form.top_k * 4);
  std::int64_t again = keeps_received(config) ? 0 : sent + choices + counts;
  return {sent + choices + counts, returned, again + sent, returned + weights};
}

}  // namespace ganymede::plan
