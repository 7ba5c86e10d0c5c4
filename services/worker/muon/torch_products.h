#pragma once

#include <cstdint>
#include <functional>

#include "common/newton_schulz/bf16/dot_kernel.h"
#include "common/newton_schulz/products.h"

namespace ganymede::worker::muon {

/// Products on ATen's threads, in tiles of one thread each, so that the bits depend on neither threads nor batch
/// (MKL_CBWR as the launcher sets it): through libtorch, or for bf16, where the processor has its dot product, through
/// common/newton_schulz/bf16. In bf16 all matrices of the iteration are bf16, as in torch.optim.Muon, and each product
/// is rounded once; the norm is that of the fp32 input.
class TorchProducts : public newton_schulz::Products {
 public:
  /// own_kernel: for bf16, common/newton_schulz/bf16 and not libtorch.
  explicit TorchProducts(newton_schulz::Element element, bool own_kernel = newton_schulz::bf16::available())
      : element_(element), own_kernel_(own_kernel && element == newton_schulz::Element::bf16) {}

  newton_schulz::Element element() const override { return element_; }
  void multiply(const newton_schulz::Product& product) override;
  void multiply_alone(const newton_schulz::Product& product) override;
  int workers() const override;
  void for_each(std::int64_t tasks, const std::function<void(std::int64_t)>& body) override;

 private:
  newton_schulz::Element element_;
  bool own_kernel_;
};

}  // namespace ganymede::worker::muon
