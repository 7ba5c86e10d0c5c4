#include "tests/numerics/optimizers/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "common/base/random.h"
#include "services/optimizer/plugin.h"
#include "tests/support/tree.h"

namespace ganymede::optimizer {

const GanymedeOptimizer& plugin(const std::string& name) {
  static std::map<std::string, Plugin> loaded;
  if (!loaded.contains(name)) loaded[name] = load_plugin(GANYMEDE_BINARY_DIR "/plugins/" + name + ".so");
  return *loaded[name].table;
}

Parameters start(std::size_t count, std::size_t slots) {
  Parameters p;
  for (std::size_t i = 0; i < count; i++) p.value.push_back(static_cast<float>(0.02 * normal(1, 0, i, 3)));
  p.state.assign(slots, std::vector<float>(count, 0.0f));
  return p;
}

std::vector<float> gradients(std::uint64_t step, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; i++) {
    values[i] = static_cast<float>((uniform(step, 1, i) - 0.5) * std::pow(10.0, -8.0 * uniform(9, 2, i)));
  }
  return values;
}

void update(const GanymedeOptimizer& table, Parameters& p, const std::vector<float>& gradient, const GanymedeStep& step,
            std::size_t from, std::size_t to, bool decayed) {
  Parameters before = p;
  std::vector<const float*> state;
  std::vector<float*> new_state;
  for (const auto& slot : before.state) state.push_back(slot.data() + from);
  for (auto& slot : p.state) new_state.push_back(slot.data() + from);
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.slots = static_cast<std::uint32_t>(state.size());
  chunk.count = to - from;
  chunk.decayed = decayed ? 1 : 0;
  chunk.gradient = gradient.data() + from;
  chunk.master = before.value.data() + from;
  chunk.state = state.data();
  chunk.new_master = p.value.data() + from;
  chunk.new_state = new_state.data();
  ASSERT_EQ(table.update_chunk(&step, &chunk), 0);
}

double farthest(const std::vector<float>& ours, const float* theirs, const std::vector<float>& old) {
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); i++) {
    float scale = std::max(std::abs(theirs[i]), std::abs(old[i]));
    double ulp = static_cast<double>(std::nextafter(scale, std::numeric_limits<float>::infinity())) - scale;
    most = std::max(most, std::abs(static_cast<double>(ours[i]) - theirs[i]) / ulp);
  }
  return most;
}

void expect_cuts_change_nothing(const GanymedeOptimizer& table, GanymedeStep step) {
  constexpr std::size_t count = 1000;
  Parameters whole = start(count, table.slot_count), pieces = whole;
  for (step.step = 1; step.step <= 5; step.step++) {
    std::vector<float> gradient = gradients(step.step, count);
    update(table, whole, gradient, step, 0, count);
    for (std::size_t from = 0, piece = 1; from < count; from += piece, piece = piece % 37 + 2) {
      update(table, pieces, gradient, step, from, std::min(count, from + piece));
    }
  }
  EXPECT_EQ(whole.value, pieces.value);
  EXPECT_EQ(whole.state, pieces.state);
}

}  // namespace ganymede::optimizer
