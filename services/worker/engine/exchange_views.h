#pragma once

#include "common/plan/exchange_form.h"
#include "services/worker/engine/bindings.h"
#include "services/worker/model/layer_parts.h"

namespace ganymede::worker {

/// Tensors over the exchange buffers of one operation. Undefined where the operation has no such buffer. A buffer is
/// there once it was taken, by whichever lane; who may touch it when follows from the plan.
class ExchangeViews {
 public:
  ExchangeViews(const Workbench& bench, const plan::StepPlan& plan, const Bindings& bindings,
                const plan::Operation& operation)
      : bench_(bench),
        plan_(plan),
        operation_(operation),
        form_(plan::exchange_form(bench.config)),
        kept_(bindings.kept(operation)) {}

  const plan::ExchangeForm& form() const { return form_; }
  /// What this rank sends, where forward or recomputation writes it.
  model::OwnRows own() const;
  /// All rows that there is room for.
  model::ReceivedRows received() const;
  /// Rows of one of the other buffers, and what goes with them.
  at::Tensor rows(plan::Travel travel, bool backward = false) const { return view(travel, backward, false); }
  at::Tensor with_rows(plan::Travel travel, bool backward = false) const { return view(travel, backward, true); }
  const model::KeptLayer& kept() const { return kept_; }

 private:
  at::Tensor view(plan::Travel travel, bool backward, bool with) const;

  const Workbench& bench_;
  const plan::StepPlan& plan_;
  const plan::Operation& operation_;
  plan::ExchangeForm form_;
  model::KeptLayer kept_;
};

}  // namespace ganymede::worker
