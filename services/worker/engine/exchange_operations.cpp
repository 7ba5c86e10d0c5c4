#include "services/worker/engine/exchange_operations.h"

#include <algorithm>

#include "services/worker/engine/exchange_views.h"

namespace ganymede::worker {

using plan::BufferKind;
using plan::Operation;
using plan::OperationKind;
using plan::Travel;

void ExchangeOperations::install(OperationTable& table) {
  table[OperationKind::dispatch] = [this](const Operation& o, int) { dispatch(o); };
  table[OperationKind::combine] = [this](const Operation& o, int) { combine(o); };
}

/// Forward sends rows and choices. Backward sends them again, unless what came is kept, and then the gradients.
void ExchangeOperations::dispatch(const Operation& operation) {
  ExchangeViews views(bench_, plan_, bindings_, operation);
  model::ExpertExchange& exchange = *bench_.exchange;
  model::Dispatch& route = bench_.pass.dispatched.at(static_cast<std::size_t>(operation.row));
  model::OwnRows own = views.own();
  route = model::plan_dispatch(exchange, own.choices, bench_.config.model.experts, views.form().even);
  at::Tensor staged = views.rows(Travel::staged);
  std::int64_t arrived = route.received_rows();
  bench_.pass.exchange_rows = std::max(bench_.pass.exchange_rows, arrived);
  int gradient = find_buffer(plan_, operation, BufferKind::scratch, -1, -1);
  if (gradient < 0 || !plan::keeps_received(bench_.config)) {
    model::ReceivedRows received = views.received();
    model::send(exchange, route, own.rows, staged, received.rows.narrow(0, 0, arrived));
    model::send(exchange, route, own.choices, views.with_rows(Travel::staged), received.choices.narrow(0, 0, arrived));
  }
  if (gradient < 0) return;
  model::send(exchange, route, bindings_.hidden(gradient), staged, views.rows(Travel::gradients).narrow(0, 0, arrived));
}

/// Forward adds the results to what the row was before the experts. Backward brings gradients back, by rows and by
/// routing weights.
void ExchangeOperations::combine(const Operation& operation) {
  ExchangeViews views(bench_, plan_, bindings_, operation);
  model::ExpertExchange& exchange = *bench_.exchange;
  const model::Dispatch& route = bench_.pass.dispatched.at(static_cast<std::size_t>(operation.row));
  std::int64_t arrived = route.received_rows();
  at::Tensor gradients = views.rows(Travel::gradients);
  if (gradients.defined()) {
    at::Tensor weights = views.with_rows(Travel::combined);
    at::Tensor returned = route.even ? weights : views.with_rows(Travel::returned, true);
    model::bring_back(exchange, route, gradients.narrow(0, 0, arrived), views.rows(Travel::returned, true), {},
                      views.rows(Travel::combined));
    model::bring_back(exchange, route, views.with_rows(Travel::gradients).narrow(0, 0, arrived), returned, {}, weights);
    return;
  }
  at::Tensor results = views.rows(Travel::results);
  if (!results.defined()) results = views.received().rows;
  int middle = find_buffer(plan_, operation, BufferKind::scratch, -1, operation.layer);
  int out = find_buffer(plan_, operation, BufferKind::saved_input, -1, operation.layer + 1);
  model::bring_back(exchange, route, results.narrow(0, 0, arrived), views.rows(Travel::returned),
                    middle < 0 ? views.kept().middle : bindings_.hidden(middle), bindings_.hidden(out));
}

}  // namespace ganymede::worker
