#include "common/newton_schulz/cblas/cblas_products.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/newton_schulz/suite.h"

namespace ganymede::newton_schulz {
namespace {

struct Cblas {
  static std::unique_ptr<Products> make(int threads) {
    if (threads == 1) return std::make_unique<CblasProducts>();
    return std::make_unique<CblasProducts>(
        threads, [threads](std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
          std::atomic<std::int64_t> next{0};
          std::vector<std::jthread> team;
          for (int i = 0; i < threads; ++i) {
            team.emplace_back([&] {
              for (std::int64_t task; (task = next.fetch_add(1)) < tasks;) body(task);
            });
          }
        });
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(OverCblas, Orthogonalise, Cblas);

}  // namespace
}  // namespace ganymede::newton_schulz
