#include "launcher/supervisor/step_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace ganymede::launcher {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

TEST(StepLine, HasTheDesignsForm) {
  StepFigures figures{.step = 120, .steps = 2000, .loss = 3.2812};
  figures.grad_norm = 1.4567;
  figures.lr = 3e-4;
  figures.step_seconds = 0.8121;
  figures.tokens_per_second = 5043.2;
  figures.mfu = 0.412;
  figures.memory = StepFigures::Memory{1.2 * gib, 2.0 * gib};
  figures.imbalance = 1.07;
  figures.eta_seconds = 25 * 60;
  EXPECT_EQ(step_line(figures),
            "step 120/2000 | loss 3.281 | norm 1.46 | lr 3.0e-4 | 812 ms | 5,043 tok/s | eta 25 min | mfu 41% | "
            "mem 1.2/2.0 GiB | imbalance 1.07");
}

TEST(StepLine, LeavesOutWhatIsNotKnownAndMarksASkippedStep) {
  StepFigures figures{.step = 1, .steps = 2, .loss = std::nan(""), .skipped = true};
  EXPECT_EQ(step_line(figures), "step 1/2 | loss nan | skipped");
}

TEST(StepLine, ExtremeFiguresStayReadable) {
  StepFigures figures{.step = 1, .steps = 2, .loss = 5.5};
  figures.lr = 0;
  figures.mfu = 0.0041;
  figures.step_seconds = 42;
  EXPECT_EQ(step_line(figures), "step 1/2 | loss 5.500 | lr 0.0e0 | 42 s | mfu 0.4%");
}

TEST(StepLine, NormHasThreeDigitsWhateverTheyAre) {
  StepFigures figures{.step = 1, .steps = 2, .loss = 5.5};
  const std::pair<double, const char*> cases[] = {
      {17.0, "17.0"}, {2.2, "2.20"}, {0.845, "0.845"}, {123.0, "123"}, {1.0, "1.00"}};
  for (const auto& [norm, shown] : cases) {
    figures.grad_norm = norm;
    EXPECT_EQ(step_line(figures), std::string("step 1/2 | loss 5.500 | norm ") + shown);
  }
}

}  // namespace
}  // namespace ganymede::launcher
