#include "services/worker/engine/current_operations.h"

#include <gtest/gtest.h>

#include <thread>
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

TEST(CurrentOperations, OneThatWaitsIsNotOneThatWorks) {
  Operation forward{OperationKind::forward, Lane::compute}, apply{OperationKind::orthogonalise, Lane::host};
  std::vector<OperationKind> shown;
  CurrentOperations current([&](const Operation& operation) { shown.push_back(operation.kind); });
  current.started(forward);
  current.started(apply);
  current.waits(true);  // the newest of this thread
  EXPECT_EQ(shown.back(), OperationKind::forward);
  current.waits(false);
  EXPECT_EQ(shown.back(), OperationKind::orthogonalise);
}

TEST(CurrentOperations, PlannedTimeIsKnownOfWhatWasDoneBeforeAndWorks) {
  Operation forward{OperationKind::forward, Lane::compute}, gather{OperationKind::gather, Lane::gather};
  double planned = -1;
  CurrentOperations current([&](const Operation&) { planned = 0; },
                            [&](const service::PlannedTime& time) { planned = time.seconds; });
  current.started(forward);
  EXPECT_EQ(planned, 0) << "the first time";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  current.ended(forward);
  current.started(forward);
  EXPECT_GE(planned, 0.02);
  current.waits(true);
  EXPECT_EQ(planned, 0) << "it waits";
  std::this_thread::sleep_for(std::chrono::seconds(1));
  current.waits(false);
  EXPECT_GE(planned, 0.018) << "it works again";
  current.ended(forward);
  EXPECT_EQ(planned, 0) << "nothing is done";
  current.started(forward);
  EXPECT_LT(planned, 1) << "the wait was not counted";
  current.ended(forward);
  current.started(gather);
  current.ended(gather);
  current.started(gather);
  EXPECT_EQ(planned, 0) << "it ends when the others come";
}

TEST(CurrentOperations, OfAPlanThatIsGivenUpHaveNoPlannedTime) {
  Operation forward{OperationKind::forward, Lane::compute}, offload{OperationKind::offload, Lane::to_host};
  double planned = -1;
  CurrentOperations current([&](const Operation&) { planned = 0; },
                            [&](const service::PlannedTime& time) { planned = time.seconds; });
  for (int i = 0; i < 2; ++i) {
    current.started(forward);
    current.started(offload);
    current.ended(offload);
    if (i == 0) current.ended(forward);
  }
  EXPECT_GT(planned, 0);
  current.give_up();
  EXPECT_EQ(planned, 0);
  current.started(offload);
  EXPECT_EQ(planned, 0);
}

}  // namespace
}  // namespace ganymede::worker
