#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "services/worker/model/matmul.h"
#include "services/worker/model/softmax_kernels.h"

namespace ganymede::worker::model::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Values of both signs; the end of a row must be computed like its middle, whatever its length.
at::Tensor values(std::int64_t n, at::ScalarType dtype) {
  return (at::arange(n, at::kFloat) * 0.37 - 3).sin().mul_(4).to(dtype);
}

class RowKernels : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tolerance() const { return GetParam() == at::kFloat ? 2e-6 : 1e-2; }
  Element element() const { return GetParam() == at::kFloat ? Element::fp32 : Element::bf16; }
  void expect_near(const at::Tensor& a, const at::Tensor& b) const {
    EXPECT_TRUE(a.to(at::kFloat).allclose(b.to(at::kFloat), tolerance(), tolerance()));
  }
};

TEST_P(RowKernels, ASumThatOthersMadeIsAddedWithTheBitsOfOneMadeHere) {
  for (std::int64_t n : {1, 7, 33}) {
    const auto size = static_cast<std::size_t>(n);
    const auto base = values(n, GetParam()), a = values(n, GetParam()) * 0.3, b = values(n, GetParam()) * -0.7;
    const auto sum = a.to(at::kFloat) + b.to(at::kFloat);
    const void* rows[] = {a.const_data_ptr(), b.const_data_ptr()};
    for (const void* under : {base.const_data_ptr(), static_cast<const void*>(nullptr)}) {
      auto here = at::full({n + 1}, 99, at::dtype(GetParam())), there = here.clone();
      sum_rows(under, rows, nullptr, 2, here.data_ptr(), size, element());
      add_fp32(under, sum.const_data_ptr<float>(), there.data_ptr(), size, element());
      EXPECT_TRUE(here.equal(there)) << n;
    }
  }
  const float negative_zero = -0.0f;
  float out = 1;
  add_fp32(nullptr, &negative_zero, &out, 1, Element::fp32);
  EXPECT_FALSE(std::signbit(out)) << "as a sum that begins with 0";
}

TEST_P(RowKernels, RowsOfEveryLengthAreComputedToTheirEndAndNoFurther) {
  for (std::int64_t n = 1; n <= 40; ++n) {
    const auto x = values(n, GetParam()), y = values(n, GetParam()) * 0.5;
    const auto size = static_cast<std::size_t>(n);
    auto out = at::full({n + 1}, 99, at::dtype(GetParam()));
    swiglu(x.const_data_ptr(), y.const_data_ptr(), out.data_ptr(), size, element());
    const auto wide = x.to(at::kFloat);
    expect_near(out.narrow(0, 0, n), wide * wide.sigmoid() * y.to(at::kFloat));
    EXPECT_EQ(out[n].item<float>(), 99);
    const float product = dot(x.const_data_ptr(), y.const_data_ptr(), size, element());
    EXPECT_NEAR(product, (wide * y.to(at::kFloat)).sum().item<float>(), 1e-3);
    const void* rows[] = {x.const_data_ptr(), y.const_data_ptr()};
    const float weights[] = {2, -1};
    sum_rows(x.const_data_ptr(), rows, weights, 2, out.data_ptr(), size, element());
    expect_near(out.narrow(0, 0, n), wide * 3 - y.to(at::kFloat));
    EXPECT_EQ(out[n].item<float>(), 99);
  }
}

TEST_P(RowKernels, RotationIsUndoneByItsInverse) {
  const auto x = values(21, GetParam());
  const auto angle = at::arange(5, at::kFloat);
  const auto cos = angle.cos(), sin = angle.sin();
  auto turned = at::empty({21});
  auto back = at::empty({21}, GetParam());
  rotate(x.const_data_ptr(), turned.data_ptr<float>(), cos.const_data_ptr<float>(), sin.const_data_ptr<float>(), 5, 21,
         element());
  EXPECT_NEAR(turned[1].item<float>(), x[1].item<float>() * std::cos(1.0f) - x[6].item<float>() * std::sin(1.0f), 1e-5);
  EXPECT_EQ(turned[20].item<float>(), x[20].item<float>());
  rotate_back(turned.const_data_ptr<float>(), back.data_ptr(), cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
              5, 21, element());
  expect_near(back, x);
}

TEST_P(RowKernels, LogSumOfLargeAndMaskedLogitsIsFinite) {
  auto x = at::full({19}, 3e4, at::dtype(GetParam()));
  const double large = x[0].item<float>();
  EXPECT_NEAR(log_sum_exp(x.const_data_ptr(), 19, element()), large + std::log(19.0), 1e-3 * large);
  x.fill_(-infinity);
  x[7] = 1.5;
  EXPECT_EQ(log_sum_exp(x.const_data_ptr(), 19, element()), 1.5f);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(log_sum_exp(x.const_data_ptr(), 19, element())));
}

INSTANTIATE_TEST_SUITE_P(Types, RowKernels, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& tested) { return tested.param == at::kFloat ? "Fp32" : "Bf16"; });

TEST(Bf16, IsRoundedToNearestEvenAndNanStaysNan) {
  auto x = at::cat({at::tensor({1.00390625, 1.01171875, 3.4e38, -0.0, 1e-40}, at::kFloat), values(200, at::kFloat)});
  auto ours = at::empty_like(x, at::kBFloat16);
  from_fp32(x.const_data_ptr<float>(), ours.data_ptr(), static_cast<std::size_t>(x.numel()), 1, Element::bf16);
  EXPECT_TRUE(ours.view(at::kShort).equal(x.to(at::kBFloat16).view(at::kShort)));
  const float nan = std::bit_cast<float>(0x7fffffffu);
  std::uint16_t bits = 0;
  from_fp32(&nan, &bits, 1, 1, Element::bf16);
  EXPECT_TRUE(std::isnan(element_at(&bits, 0, Element::bf16)));
}

TEST(Softmax, MaskedLogitsAreZeroAndTheSinkIsInTheSumAlone) {
  for (std::size_t n = 1; n < 40; ++n) {
    for (std::size_t begin = 0; begin < n; begin += 3) {
      std::vector<float> row(n, 2.0f);
      const auto softmax_row = softmax(row.data(), begin, n, n, 0.5f, 3.0f);
      EXPECT_EQ(softmax_row.maximum, 3.0f);
      EXPECT_NEAR(softmax_row.sum, 1 + static_cast<float>(n - begin) * std::exp(-2.0f), 1e-5);
      for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(row[i], i < begin ? 0 : std::exp(-2.0f), 1e-6);
    }
  }
  std::vector<float> row = {1, 2, 3};
  EXPECT_NEAR(softmax(row.data(), 0, 2, 3, 1, -infinity).sum, 1 + std::exp(-1.0f), 1e-6);
}

}  // namespace
}  // namespace ganymede::worker::model::kernels
