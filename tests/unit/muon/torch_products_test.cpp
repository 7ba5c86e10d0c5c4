#include "services/worker/muon/torch_products.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <ostream>

#include "common/base/error.h"
#include "tests/unit/newton_schulz/suite.h"

namespace ganymede::newton_schulz {
namespace {

struct Torch {
  static std::unique_ptr<Products> make(int threads) {
    at::set_num_threads(threads);
    return std::make_unique<worker::muon::TorchProducts>(Element::fp32);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(OverTorch, Orthogonalise, Torch);

/// Whether bf16 goes through common/newton_schulz/bf16; else through libtorch, which each processor can.
class Bf16 : public testing::TestWithParam<bool> {};

/// torch.optim.Muon's own iteration (torch/optim/_muon.py, _zeropower_via_newtonschulz), operation for operation, with
/// coefficients that may differ from step to step.
std::vector<float> as_torch_does(const std::vector<float>& in, Shape shape, const Schedule& schedule) {
  const auto gradient = at::from_blob(const_cast<float*>(in.data()), {shape.rows, shape.cols}, at::kFloat);
  auto x = gradient.to(at::kBFloat16);
  if (shape.rows > shape.cols) x = x.t();
  x.div_(x.norm().clamp(1e-7));
  for (const auto& [a, b, c] : schedule) {
    const auto gram = at::mm(x, x.t());
    const auto update = at::addmm(gram, gram, gram, b, c);
    x = at::addmm(x, update, x, a);
  }
  if (shape.rows > shape.cols) x = x.t();
  const auto out = x.to(at::kFloat).contiguous();
  return {out.data_ptr<float>(), out.data_ptr<float>() + out.numel()};
}

std::vector<float> as_we_do(const std::vector<float>& in, Shape shape, const Schedule& schedule, bool own_kernel) {
  worker::muon::TorchProducts products(Element::bf16, own_kernel);
  return run(products, in, shape, {schedule, Form::automatic}).values;
}

/// Squares of distances from the fp64 result, over several matrices: which of two roundings comes nearer for one matrix
/// alone is chance where a single singular value decides.
struct Distances {
  bool own_kernel = false;
  double ours = 0, torchs = 0;

  template <class Distance>
  void add(const std::vector<float>& values, Shape shape, const Schedule& schedule, const Distance& distance) {
    ours += std::pow(distance(as_we_do(values, shape, schedule, own_kernel)), 2);
    torchs += std::pow(distance(as_torch_does(values, shape, schedule)), 2);
  }
  bool holds() const { return std::sqrt(ours) <= 1.2 * std::sqrt(torchs); }
};

std::ostream& operator<<(std::ostream& out, const Distances& distances) {
  return out << std::sqrt(distances.ours) << " from fp64, torch " << std::sqrt(distances.torchs) << ": ";
}

TEST_P(Bf16, IsNoFurtherFromFp64ThanTorchsMuonIs) {
  at::set_num_threads(1);
  for (const Shape shape : {Shape{64, 64}, {40, 130}, {130, 40}, {33, 65}, {1, 64}, {64, 1}}) {
    for (const double least : {1., .01}) {  // 1: not a given spectrum, but normal elements
      for (const auto& [name, schedule] : named_schedules()) {
        if (!withstands_bf16(schedule)) continue;
        Distances distances{GetParam()};
        for (std::uint64_t key = 0; key < 6; ++key) {
          const auto values =
              reference::to_fp32(least == 1 ? reference::random_matrix(key, shape.rows, shape.cols)
                                            : reference::with_spectrum(2 * key, shape.rows, shape.cols, least));
          const auto exact =
              reference::orthogonalised(reference::from_fp32(values.data(), shape.rows, shape.cols), schedule);
          distances.add(values, shape, schedule,
                        [&](const auto& result) { return reference::norm(difference(result, exact)); });
        }
        EXPECT_TRUE(distances.holds()) << distances << shape << " least " << least << " " << name;
      }
    }
  }
}

TEST_P(Bf16, IsNoFurtherFromFp64ThanTorchsMuonIsInsideTheSpacesOfADeficientMatrix) {
  at::set_num_threads(1);
  for (const Shape shape : {Shape{32, 32}, {24, 61}, {61, 24}}) {
    for (const std::int64_t rank : {1, 5, 20}) {
      for (const auto& [name, schedule] : named_schedules()) {
        if (!withstands_bf16(schedule)) continue;
        Distances distances{GetParam()};
        for (std::uint64_t key = 0; key < (rank == 1 ? 200 : 30); ++key) {
          const Deficient deficient(2 * key, shape, rank);
          const auto exact = reference::orthogonalised(deficient.matrix, schedule);
          distances.add(reference::to_fp32(deficient.matrix), shape, schedule, [&](const auto& result) {
            return reference::norm(reference::inside(difference(result, exact), deficient.columns, deficient.rows));
          });
        }
        EXPECT_TRUE(distances.holds()) << distances << shape << " rank " << rank << " " << name;
      }
    }
  }
}

TEST_P(Bf16, GivesAMatrixTheSameBitsForAnyBatchAndAnyNumberOfThreads) {
  for (const Shape shape : {Shape{17, 40}, {300, 270}, {96, 530}}) {
    const auto& schedule = schedule_of("kj5");
    const auto all = reference::to_fp32(reference::random_matrix(6, 5 * shape.rows, shape.cols));
    const auto size = static_cast<std::ptrdiff_t>(shape.rows * shape.cols);
    at::set_num_threads(1);
    std::vector<float> each;
    for (std::ptrdiff_t i = 0; i < 5; ++i) {
      const auto alone = as_we_do({all.begin() + i * size, all.begin() + (i + 1) * size}, shape, schedule, GetParam());
      each.insert(each.end(), alone.begin(), alone.end());
    }
    for (const int threads : {1, 2, 3, 8}) {  // of 8, no thread has a matrix of its own
      at::set_num_threads(threads);
      EXPECT_EQ(as_we_do(all, shape, schedule, GetParam()), each) << shape << " " << threads;
    }
  }
}

TEST_P(Bf16, RefusesAScheduleThatDiverges) {
  EXPECT_THROW(as_we_do(std::vector<float>(12, 1), {3, 4}, schedule_of("cans5"), GetParam()), Error);
}

std::vector<bool> kernels_of_this_processor() {
  return bf16::available() ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

INSTANTIATE_TEST_SUITE_P(Through, Bf16, testing::ValuesIn(kernels_of_this_processor()),
                         [](const auto& param) { return param.param ? "OwnKernel" : "Libtorch"; });

}  // namespace
}  // namespace ganymede::newton_schulz
