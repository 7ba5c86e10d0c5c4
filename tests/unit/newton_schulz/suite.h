#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "tests/unit/newton_schulz/cases.h"

/// What holds for orthogonalise() over every fp32 implementation of Products. The type parameter has a static
/// `std::unique_ptr<Products> make(int threads)`.
namespace ganymede::newton_schulz {

template <class Implementation>
class Orthogonalise : public testing::Test {
 protected:
  std::unique_ptr<Products> products = Implementation::make(1);
};

TYPED_TEST_SUITE_P(Orthogonalise);

/// What fp32 can reach, relative to the largest element. Schedules that are steep near 1 (README of the library) make
/// the most of a rounding where one singular value carries nearly the whole norm, as it may in a few rows.
inline double full_rank_bound(const std::string& schedule, Shape shape) {
  const bool few = std::min(shape.rows, shape.cols) <= 8;
  if (schedule == "cans5") return few ? 2e-2 : 2e-4;
  return few && (schedule == "polar_express5" || schedule == "cubic5") ? 1e-4 : 1e-5;
}

TYPED_TEST_P(Orthogonalise, IsWithin1e5OfFp64AtFullRank) {
  for (const Shape shape : {Shape{64, 64}, {40, 130}, {130, 40}, {33, 65}, {7, 5}, {2, 301}, {1, 1}}) {
    for (const auto& in : {reference::random_matrix(1, shape.rows, shape.cols),
                           reference::with_spectrum(2, shape.rows, shape.cols, .01)}) {
      const auto values = reference::to_fp32(in);
      const auto given = reference::from_fp32(values.data(), shape.rows, shape.cols);
      for (const auto& [name, schedule] : named_schedules()) {
        const auto exact = reference::orthogonalised(given, schedule);
        for (const auto form : both_forms) {
          const auto ours = run(*this->products, values, shape, {schedule, form});
          EXPECT_FALSE(ours.not_finite);
          EXPECT_LE(reference::largest(difference(ours.values, exact)),
                    full_rank_bound(name, shape) * reference::largest(exact))
              << shape << " " << name << " " << name_of(form);
        }
      }
    }
  }
}

TYPED_TEST_P(Orthogonalise, IsWithin1e5OfFp64WhereProductsHaveSeveralTiles) {
  for (const Shape shape : {Shape{270, 530}, {530, 270}}) {
    const auto values = reference::to_fp32(reference::random_matrix(3, shape.rows, shape.cols));
    const auto exact =
        reference::orthogonalised(reference::from_fp32(values.data(), shape.rows, shape.cols), schedule_of("quintic5"));
    for (const auto form : both_forms) {
      const auto ours = run(*this->products, values, shape, {schedule_of("quintic5"), form});
      EXPECT_LE(reference::largest(difference(ours.values, exact)), 1e-5 * reference::largest(exact))
          << shape << " " << name_of(form);
    }
  }
}

TYPED_TEST_P(Orthogonalise, IsWithin3e4InsideTheSpacesOfADeficientMatrix) {
  for (const Shape shape : {Shape{64, 64}, {50, 131}, {131, 50}}) {
    for (const std::int64_t rank : {1, 5, 40}) {
      const Deficient deficient(11, shape, rank);
      for (const auto& [name, schedule] : named_schedules()) {
        if (name == "cans5" && rank == 1) continue;
        const auto exact = reference::orthogonalised(deficient.matrix, schedule);
        for (const auto form : both_forms) {
          const auto ours = run(*this->products, reference::to_fp32(deficient.matrix), shape, {schedule, form});
          const auto error = reference::inside(difference(ours.values, exact), deficient.columns, deficient.rows);
          EXPECT_LE(reference::largest(error), 3e-4 * reference::largest(exact))
              << shape << " rank " << rank << " " << name << " " << name_of(form);
        }
      }
    }
  }
}

TYPED_TEST_P(Orthogonalise, MakesAVectorAUnitVectorTimesTheSchedulesValue) {
  for (const Shape shape : {Shape{1, 37}, {37, 1}}) {
    const auto in = reference::random_matrix(4, shape.rows, shape.cols);
    const double norm = reference::norm(in);
    for (const auto& [name, schedule] : named_schedules()) {
      const double value = apply(schedule, norm / (norm + 1e-7));
      for (const auto form : both_forms) {
        const auto ours = run(*this->products, reference::to_fp32(in), shape, {schedule, form});
        for (std::size_t i = 0; i < ours.values.size(); ++i) {
          EXPECT_NEAR(ours.values[i], in.values[i] / norm * value, 2e-7) << name;
        }
      }
    }
  }
}

TYPED_TEST_P(Orthogonalise, MakesZerosOfZeros) {
  for (const Shape shape : {Shape{5, 9}, {9, 5}, {1, 4}, {4, 1}}) {
    for (const auto form : both_forms) {
      const std::vector<float> zeros(static_cast<std::size_t>(2 * shape.rows * shape.cols));
      const auto ours = run(*this->products, zeros, shape, {schedule_of("kj5"), form});
      EXPECT_FALSE(ours.not_finite);
      EXPECT_EQ(ours.values, zeros);
    }
  }
}

TYPED_TEST_P(Orthogonalise, TakesTheSmallestAndTheLargestNumbers) {
  const Shape shape{12, 20};
  for (const float scale : {1e-38F, 1e-12F, 1e-7F, 1e30F, 8e37F}) {
    auto values = reference::to_fp32(reference::random_matrix(5, shape.rows, shape.cols));
    for (float& value : values) value *= scale;
    const auto exact =
        reference::orthogonalised(reference::from_fp32(values.data(), shape.rows, shape.cols), schedule_of("quintic5"));
    for (const auto form : both_forms) {
      const auto ours = run(*this->products, values, shape, {schedule_of("quintic5"), form});
      EXPECT_FALSE(ours.not_finite);
      EXPECT_LE(reference::largest(difference(ours.values, exact)), 1e-5 * reference::largest(exact))
          << scale << " " << name_of(form);
    }
  }
}

TYPED_TEST_P(Orthogonalise, GivesAMatrixTheSameBitsWhateverElseIsInTheBatch) {
  for (const Shape shape : {Shape{17, 40}, {40, 17}, {64, 64}, {300, 270}}) {
    for (const auto form : both_forms) {
      const Settings settings{schedule_of("polar_express5"), form};
      const auto all = reference::to_fp32(reference::random_matrix(6, 3 * shape.rows, shape.cols));
      const auto together = run(*this->products, all, shape, settings).values;
      const auto size = static_cast<std::ptrdiff_t>(shape.rows * shape.cols);
      for (std::ptrdiff_t i = 0; i < 3; ++i) {
        const std::vector<float> one(all.begin() + i * size, all.begin() + (i + 1) * size);
        const auto alone = run(*this->products, one, shape, settings).values;
        EXPECT_EQ(std::memcmp(alone.data(), together.data() + i * size, alone.size() * sizeof(float)), 0)
            << shape << " " << name_of(form) << " matrix " << i;
      }
    }
  }
}

TYPED_TEST_P(Orthogonalise, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const Shape shape : {Shape{33, 70}, {530, 270}}) {
    for (const auto form : both_forms) {
      const Settings settings{schedule_of("quintic5"), form};
      const auto in = reference::to_fp32(reference::random_matrix(7, 3 * shape.rows, shape.cols));
      const auto one = run(*TypeParam::make(1), in, shape, settings).values;
      for (const int threads : {2, 3}) {
        const auto several = run(*TypeParam::make(threads), in, shape, settings).values;
        EXPECT_EQ(std::memcmp(one.data(), several.data(), one.size() * sizeof(float)), 0) << shape << " " << threads;
      }
    }
  }
}

TYPED_TEST_P(Orthogonalise, ReportsTheFirstMatrixThatIsNotFiniteAndFillsItWithNaN) {
  const Shape shape{6, 10};
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const auto form : both_forms) {
      const Settings settings{schedule_of("kj5"), form};
      auto in = reference::to_fp32(reference::random_matrix(8, 4 * shape.rows, shape.cols));
      const auto clean = run(*this->products, in, shape, settings).values;
      in[60 + 59] = in[180] = bad;
      const auto ours = run(*this->products, in, shape, settings);
      EXPECT_EQ(ours.not_finite, 1);
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (i / 60 == 1 || i / 60 == 3) {
          EXPECT_TRUE(std::isnan(ours.values[i])) << i;
        } else {
          EXPECT_EQ(ours.values[i], clean[i]) << i;
        }
      }
    }
  }
}

TYPED_TEST_P(Orthogonalise, ReportsAMatrixInWhichTheIterationOverflows) {
  const Schedule growing{{1e30, 0, 0}, {1e30, 0, 0}};
  for (const auto form : both_forms) {
    const auto ours = run(*this->products, {1, 2, 3, 4, 5, 6}, {2, 3}, {growing, form});
    EXPECT_EQ(ours.not_finite, 0);
    for (const float value : ours.values) EXPECT_TRUE(std::isnan(value));
  }
}

TYPED_TEST_P(Orthogonalise, MultipliesAsPlainLoopsDo) {
  const auto a = reference::random_matrix(20, 270, 31), b = reference::random_matrix(21, 31, 301),
             addend = reference::random_matrix(22, 270, 301);
  const auto exact = reference::sum(2.5, reference::product(a, b), -.5, addend);
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      auto a32 = reference::to_fp32(left ? reference::transposed(a) : a);
      auto b32 = reference::to_fp32(right ? reference::transposed(b) : b);
      auto addend32 = reference::to_fp32(addend);
      std::vector<float> out(addend32.size(), NAN);
      const Matrices as{a32.data(), left ? 31 : 270, left ? 270 : 31};
      const Matrices bs{b32.data(), right ? 301 : 31, right ? 31 : 301};
      this->products->multiply(
          {1, {as, left}, {bs, right}, {out.data(), 270, 301}, 2.5, -.5, {addend32.data(), 270, 301}});
      EXPECT_LE(reference::largest(difference(out, exact)), 1e-5 * reference::largest(exact)) << left << right;
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(Orthogonalise, IsWithin1e5OfFp64AtFullRank, IsWithin1e5OfFp64WhereProductsHaveSeveralTiles,
                            IsWithin3e4InsideTheSpacesOfADeficientMatrix, MakesAVectorAUnitVectorTimesTheSchedulesValue,
                            MakesZerosOfZeros, TakesTheSmallestAndTheLargestNumbers,
                            GivesAMatrixTheSameBitsWhateverElseIsInTheBatch, GivesTheSameBitsForAnyNumberOfThreads,
                            ReportsTheFirstMatrixThatIsNotFiniteAndFillsItWithNaN,
                            ReportsAMatrixInWhichTheIterationOverflows, MultipliesAsPlainLoopsDo);

}  // namespace ganymede::newton_schulz
