#include "launcher/coordinator/restart_book.h"

#include <gtest/gtest.h>

namespace ganymede::coordinator {
namespace {

RestartEvent worker(std::uint64_t number) {
  return {.number = number, .process = "worker of rank 1", .worker = true, .cause = "killed by SIGKILL"};
}

RestartEvent back(RestartEvent event, double restart) {
  event.restart = restart;
  return event;
}

TEST(RestartBook, MeasuresEachPhaseOfAWorkersRestart) {
  RestartBook book;
  book.take(1, worker(5), 10, 12, 3);
  book.watch(10, 0, 12);
  EXPECT_TRUE(book.open());
  book.take(1, back(worker(5), 0.75), 10.8, 12, 3);
  book.watch(10.9, 2, 12);  // all are still in the generation before
  book.watch(11, 3, 12);
  EXPECT_TRUE(book.take_finished().empty());
  book.watch(11.5, 3, 13);
  EXPECT_FALSE(book.open());
  auto finished = book.take_finished();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].node, 1);
  EXPECT_EQ(finished[0].step, 12u);
  EXPECT_EQ(finished[0].generation, 3u);
  EXPECT_EQ(finished[0].cause, "killed by SIGKILL");
  EXPECT_DOUBLE_EQ(finished[0].restart.value(), 0.75);
  EXPECT_NEAR(finished[0].reform.value(), 0.2, 1e-9);
  EXPECT_NEAR(finished[0].redo.value(), 0.5, 1e-9);
  EXPECT_TRUE(book.take_finished().empty()) << "given once";
  EXPECT_EQ(book.newest().size(), 1u);
}

TEST(RestartBook, RanksNeedNotMeetAgainForAnotherService) {
  RestartBook book;
  RestartEvent optimizer = worker(1);
  optimizer.worker = false;
  book.take(0, back(optimizer, 0.5), 10, 4, 9);
  book.watch(10, 0, 4);
  book.watch(10.25, 0, 5);
  auto finished = book.take_finished();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].generation, 0u);
  EXPECT_EQ(finished[0].reform, 0.0);
  EXPECT_DOUBLE_EQ(finished[0].redo.value(), 0.25);
}

TEST(RestartBook, TellsEventsOfNodesApartAndForgetsTheOldest) {
  RestartBook book;
  book.take(0, worker(7), 1, 1, 1);
  book.take(1, worker(7), 1, 1, 1);
  EXPECT_EQ(book.newest().size(), 2u);
  for (std::uint64_t number = 8; number < 40; ++number) book.take(0, worker(number), 1, 1, 1);
  EXPECT_EQ(book.newest().size(), RestartBook::kept);
  book.take(0, worker(9), 1, 1, 1);  // a node still tells of it
  EXPECT_EQ(book.newest().back().number, 39u);
}

}  // namespace
}  // namespace ganymede::coordinator
