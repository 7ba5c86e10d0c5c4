#include "services/worker/engine/current_operations.h"

#include <gtest/gtest.h>

#include <vector>

namespace ganymede::worker {
namespace {

using plan::Lane;
using plan::Operation;
using plan::OperationKind;

TEST(CurrentOperations, OneThatWorksComesBeforeOneThatWaitsForOthers) {
  Operation backward{OperationKind::backward, Lane::compute}, gather{OperationKind::gather, Lane::gather},
      reduce{OperationKind::reduce, Lane::reduce};
  std::vector<OperationKind> shown;
  CurrentOperations current([&](const Operation& operation) { shown.push_back(operation.kind); });
  current.started(backward);
  current.started(reduce);  // beside it
  current.started(gather);
  EXPECT_EQ(shown, (std::vector{OperationKind::backward}));
  current.ended(backward);  // what is left waits for other ranks, and did so first
  EXPECT_EQ(shown.back(), OperationKind::reduce);
  current.ended(reduce);
  EXPECT_EQ(shown.back(), OperationKind::gather);
  current.ended(gather);
  EXPECT_EQ(shown.back(), OperationKind::gather) << "until something else begins";
  current.started(backward);
  EXPECT_EQ(shown.back(), OperationKind::backward);
}

TEST(CurrentOperations, OfSeveralThatWorkTheOneThatBeganLast) {
  Operation offload{OperationKind::offload, Lane::to_host}, forward{OperationKind::forward, Lane::compute};
  std::vector<OperationKind> shown;
  CurrentOperations current([&](const Operation& operation) { shown.push_back(operation.kind); });
  current.started(offload);
  current.started(forward);
  current.ended(forward);
  EXPECT_EQ(shown, (std::vector{OperationKind::offload, OperationKind::forward, OperationKind::offload}));
}

}  // namespace
}  // namespace ganymede::worker
