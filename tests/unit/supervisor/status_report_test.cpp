#include "launcher/supervisor/cell_view.h"

#include <gtest/gtest.h>

namespace ganymede::launcher {
namespace {

TEST(ReadyGradients, AreThoseOfTheGenerationAndStepInWork) {
  step_protocol::ControlBlock block{};
  step_protocol::Word words[4] = {};
  service::Control control{};
  control.block = &block;
  control.gradients_ready = words;
  EXPECT_EQ(ready_gradients(control), 0u);
  block.joined_generation = 3;
  block.decided_step = 7;
  words[0] = step_protocol::gradients_ready_word(3, 8);
  words[1] = step_protocol::gradients_ready_word(2, 8);  // of an attempt that was given up
  words[2] = step_protocol::gradients_ready_word(3, 7);  // of the step before
  words[3] = step_protocol::gradients_ready_word(3, 8);
  EXPECT_EQ(ready_gradients(control), 2u);
  block.decided_step = 8;
  EXPECT_EQ(ready_gradients(control), 0u);
}

}  // namespace
}  // namespace ganymede::launcher
