#include <gtest/gtest.h>

#include <cmath>

#include "common/base/random.h"
#include "tests/numerics/optimizers/runs.h"
#include "tests/support/only_vector_unit.h"

namespace ganymede::optimizer {
namespace {

constexpr double lr = 2e-2, decay = 0.1, momentum = 0.95, beta2 = 0.95, eps = 1e-8;
constexpr double hyper[] = {momentum, 1, beta2, eps};

GanymedeStep step_of(std::uint64_t number, double scale = 1) {
  return {sizeof(GanymedeStep), 4, number, lr, decay, scale, hyper};
}

/// A matrix as Newton–Schulz leaves it, near enough: what is done with it does not depend on that.
struct Shape {
  const char* name;
  std::size_t rows, columns;
  float (*value)(std::uint64_t step, std::size_t row, std::size_t column);
};

float any(std::uint64_t step, std::size_t row, std::size_t column) {
  double size = std::pow(10.0, -3.0 * uniform(7, 1, row));  // rows of many lengths
  return static_cast<float>(size * normal(step, row, column, 5));
}
/// As of an expert that nobody has asked for long.
float nearly_nothing(std::uint64_t step, std::size_t row, std::size_t column) {
  return row == 3 ? 0.0f : static_cast<float>(1e-41 * normal(step, row, column, 5));
}
float zero(std::uint64_t, std::size_t, std::size_t) { return 0; }
float rank_one(std::uint64_t step, std::size_t row, std::size_t column) {
  return static_cast<float>(normal(step, 1, row, 5) * normal(step, 2, column, 5) * 1e-2);
}
float one_row_is_zero(std::uint64_t step, std::size_t row, std::size_t column) {
  return row == 3 ? 0.0f : any(step, row, column);
}

const Shape shapes[] = {{"Wide", 17, 403, any},
                        {"Tall", 403, 17, any},
                        {"Square", 64, 64, any},
                        {"OneRow", 1, 100, any},
                        {"OneColumn", 100, 1, any},
                        {"Zero", 8, 24, zero},
                        {"RankOne", 33, 65, rank_one},
                        {"OneRowIsZero", 9, 31, one_row_is_zero},
                        {"NearlyNothing", 9, 31, nearly_nothing}};

std::vector<float> matrix_of(const Shape& shape, std::uint64_t step) {
  std::vector<float> values;
  for (std::size_t i = 0; i < shape.rows * shape.columns; i++)
    values.push_back(shape.value(step, i / shape.columns, i % shape.columns));
  return values;
}

/// update_matrix, in place; `rows` become the new second moments.
void normalise(const GanymedeStep& step, const Shape& shape, std::vector<float>& values, std::vector<float>& rows) {
  std::vector<float> before = rows;
  const float* row_state[] = {nullptr, before.data()};
  float* new_row_state[] = {nullptr, rows.data()};
  GanymedeMatrix matrix{sizeof(GanymedeMatrix), 2, shape.rows, shape.columns, values.data(), row_state, new_row_state};
  ASSERT_EQ(plugin("normuon").update_matrix(&step, &matrix), 0);
}

/// apply_chunk of all elements.
void apply(const GanymedeStep& step, const std::vector<float>& orthogonal, std::vector<float>& master) {
  std::vector<float> before = master;
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.slots = 2;
  chunk.count = master.size();
  chunk.decayed = 1;
  chunk.master = before.data();
  chunk.orthogonal = orthogonal.data();
  chunk.new_master = master.data();
  ASSERT_EQ(plugin("normuon").apply_chunk(&step, &chunk), 0);
}

class NormuonShapes : public testing::TestWithParam<Shape> {};

/// The paper's formula (Li et al., 2025) in fp64 for 50 steps: v from its own fp64 past, each weight from ours.
TEST_P(NormuonShapes, FollowTheFp64Formula) {
  const Shape& shape = GetParam();
  std::size_t count = shape.rows * shape.columns;
  Parameters p = start(count, 0);
  std::vector<float> rows(shape.rows, 0.0f);
  std::vector<double> v(shape.rows, 0.0);
  for (std::uint64_t s = 1; s <= 50; s++) {
    std::vector<float> o = matrix_of(shape, s), values = o;
    std::vector<double> normalised(o.begin(), o.end());
    double squares = 0;
    for (std::size_t i = 0; i < shape.rows; i++) {
      double mean = 0;
      for (std::size_t j = 0; j < shape.columns; j++) mean += std::pow(normalised[i * shape.columns + j], 2);
      v[i] = beta2 * v[i] + (1 - beta2) * (mean / static_cast<double>(shape.columns));
      for (std::size_t j = 0; j < shape.columns; j++)
        squares += std::pow(normalised[i * shape.columns + j] /= std::sqrt(v[i]) + eps, 2);
    }
    double eta = squares > 0 ? 0.2 * lr * std::sqrt(static_cast<double>(count)) / std::sqrt(squares) : 0;
    normalise(step_of(s), shape, values, rows);
    std::vector<float> old = p.value;
    apply(step_of(s), values, p.value);
    for (std::size_t i = 0; i < shape.rows; i++) ASSERT_NEAR(rows[i], v[i], 1e-5 * v[i] + 0x1p-149) << s << " " << i;
    for (std::size_t i = 0; i < count; i++) {
      double w = old[i], step = eta * normalised[i];
      ASSERT_NEAR(p.value[i], w - lr * decay * w - step, std::abs(w) * 0x1p-22 + std::abs(step) * 1e-5)
          << s << " " << i;
    }
  }
}

/// The root mean square of a step is 0.2 of the rate, whatever the matrix.
TEST_P(NormuonShapes, StepHasTheSizeOfAdamws) {
  const Shape& shape = GetParam();
  std::vector<float> values = matrix_of(shape, 1), rows(shape.rows, 0.0f);
  normalise(step_of(1), shape, values, rows);
  double squares = 0;
  for (float value : values) squares += static_cast<double>(value) * value;
  double expected = shape.value == zero ? 0 : 0.2;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), expected, 1e-6);
}

TEST_P(NormuonShapes, BitsAreThoseOfEveryVectorUnit) {
  const Shape& shape = GetParam();
  std::vector<float> expected, rows_expected;
  int units = 0;
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    OnlyVectorUnit only(left & -left);
    std::vector<float> values = matrix_of(shape, 1), rows(shape.rows, 0.25f);
    normalise(step_of(1), shape, values, rows);
    if (units++ == 0) expected = values, rows_expected = rows;
    EXPECT_EQ(values, expected);
    EXPECT_EQ(rows, rows_expected);
  }
  EXPECT_GT(units, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormuonShapes, testing::ValuesIn(shapes),
                         [](const auto& test) { return std::string(test.param.name); });

/// The first phase is Muon's, bit for bit.
TEST(Normuon, MomentumAndWhatIsSentAreMuons) {
  constexpr std::size_t count = 1003;
  constexpr double muons[] = {momentum, 1, 0};
  std::vector<float> gradient = gradients(1, count), old = gradients(2, count), none(count);
  std::vector<float> kept[2], sent[2];
  for (int i = 0; i < 2; i++) {
    kept[i].resize(count);
    sent[i].resize(count);
    const float* state[] = {old.data(), nullptr};
    float* new_state[] = {kept[i].data(), nullptr};
    GanymedeStep step = step_of(1, 0.5);
    GanymedeChunk chunk{};
    chunk.size = sizeof(chunk);
    chunk.slots = i == 0 ? 2 : 1;
    chunk.count = count;
    chunk.rows = chunk.columns = 1;
    chunk.gradient = gradient.data();
    chunk.master = none.data();
    chunk.state = state;
    chunk.new_state = new_state;
    chunk.to_orthogonalise = sent[i].data();
    if (i == 1) step.hyper_count = 3, step.hyper = muons;
    ASSERT_EQ(plugin(i == 0 ? "normuon" : "muon").update_chunk(&step, &chunk), 0);
  }
  EXPECT_EQ(kept[0], kept[1]);
  EXPECT_EQ(sent[0], sent[1]);
  EXPECT_NE(sent[0], kept[0]);
}

TEST(Normuon, RefusesACallerOfAnotherAbi) {
  GanymedeStep step = step_of(1);
  GanymedeMatrix matrix{};
  matrix.size = sizeof(matrix);
  matrix.slots = 1;
  EXPECT_NE(plugin("normuon").update_matrix(&step, &matrix), 0);
  matrix.slots = 2;
  matrix.size = 8;
  EXPECT_NE(plugin("normuon").update_matrix(&step, &matrix), 0);
  matrix.size = sizeof(matrix);
  step.size = 8;
  EXPECT_NE(plugin("normuon").update_matrix(&step, &matrix), 0);
}

}  // namespace
}  // namespace ganymede::optimizer
