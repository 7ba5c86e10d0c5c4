#include "services/worker/engine/exchange_views.h"

namespace ganymede::worker {

using plan::Travel;

at::Tensor ExchangeViews::view(Travel travel, bool backward, bool with) const {
  for (const auto* list : {&operation_.takes, &operation_.uses, &operation_.frees}) {
    for (int b : *list) {
      const plan::Buffer& buffer = plan_.buffers[b];
      // What the combine of another row, or of the layer before, used is freed late: only this row's counts.
      if (buffer.travel != travel || buffer.row != operation_.row || buffer.layer != operation_.layer) continue;
      plan::TravelLayout layout = plan::travel_layout(form_, travel, backward);
      std::byte* at = bench_.pool + buffer.offset;
      if (!with) {
        at::ScalarType type = layout.fp32 ? at::kFloat : scalar_type(bench_.config.compute.dtype);
        return at::from_blob(at, {layout.rows, form_.hidden}, type);
      }
      bool choices = travel == Travel::own || travel == Travel::staged || travel == Travel::received;
      return at::from_blob(at + layout.with_offset, {layout.rows, layout.with}, choices ? at::kInt : at::kFloat);
    }
  }
  return {};
}

model::ReceivedRows ExchangeViews::received() const {
  if (kept_.received_rows.defined()) return {kept_.received_rows, kept_.received_choices, kept_.gate_up};
  return {rows(Travel::received), with_rows(Travel::received), {}};
}

model::OwnRows ExchangeViews::own() const {
  if (form_.even) {
    model::ReceivedRows all = received();
    if (!all.rows.defined()) return {};
    std::int64_t first = bench_.placement.expert_place * form_.tokens;
    return {all.rows.narrow(0, first, form_.tokens), all.choices.narrow(0, first, form_.tokens)};
  }
  if (kept_.choices.defined()) return {kept_.feed_input, kept_.choices};
  return {rows(Travel::own), with_rows(Travel::own)};
}

}  // namespace ganymede::worker
