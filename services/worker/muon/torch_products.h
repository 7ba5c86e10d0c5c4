#pragma once

#include <cstdint>
#include <functional>

#include "common/newton_schulz/products.h"

namespace ganymede::worker::muon {

/// Products through libtorch on ATen's threads, in tiles of 256 × 256 of one thread each, so that the bits depend on
/// neither threads nor batch (MKL_CBWR as the launcher sets it). In bf16 all matrices of the iteration are bf16, as in
/// torch.optim.Muon, and each product is rounded once; the norm is that of the fp32 input.
class TorchProducts : public newton_schulz::Products {
 public:
  explicit TorchProducts(newton_schulz::Element element) : element_(element) {}

  newton_schulz::Element element() const override { return element_; }
  void multiply(const newton_schulz::Product& product) override;
  void for_each(std::int64_t tasks, const std::function<void(std::int64_t)>& body) override;

 private:
  newton_schulz::Element element_;
};

}  // namespace ganymede::worker::muon
