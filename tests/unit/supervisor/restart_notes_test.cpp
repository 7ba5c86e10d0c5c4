#include "launcher/supervisor/restart_notes.h"

#include <gtest/gtest.h>

namespace ganymede::launcher {
namespace {

TEST(RestartNotes, SayHowLongAProcessWasAway) {
  RestartNotes notes;
  notes.ended("worker of rank 1", true, "killed by SIGKILL", 0, 10);
  notes.ended("data of rank 0", false, "exit code 3", 2.5, 10.5);
  ASSERT_EQ(notes.events().size(), 2u);
  EXPECT_FALSE(notes.events()[0].restart);
  notes.back("worker of rank 1", 10.75);
  notes.back("checkpoint of rank 0", 11);  // nobody missed it
  EXPECT_DOUBLE_EQ(notes.events()[0].restart.value(), 0.75);
  EXPECT_FALSE(notes.events()[1].restart);
  EXPECT_EQ(notes.events()[1].detect, 2.5);
  EXPECT_GT(notes.events()[1].number, notes.events()[0].number);
}

TEST(RestartNotes, AReplacementThatEndsBeforeItWasThereIsAnEventOfItsOwn) {
  RestartNotes notes;
  notes.ended("worker of rank 1", true, "killed by SIGKILL", 0, 10);
  notes.ended("worker of rank 1", true, "exit code 1", 0, 11);
  notes.back("worker of rank 1", 13);
  ASSERT_EQ(notes.events().size(), 2u);
  EXPECT_DOUBLE_EQ(notes.events()[0].restart.value(), 1);
  EXPECT_DOUBLE_EQ(notes.events()[1].restart.value(), 2);
}

TEST(RestartNotes, KeepTheNewest) {
  RestartNotes notes;
  for (int i = 0; i < 50; ++i) notes.ended("data of rank 0", false, std::to_string(i), 0, i);
  EXPECT_EQ(notes.events().size(), coordinator::RestartBook::kept);
  EXPECT_EQ(notes.events().back().cause, "49");
}

}  // namespace
}  // namespace ganymede::launcher
