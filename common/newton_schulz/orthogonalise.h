#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/newton_schulz/coefficients.h"
#include "common/newton_schulz/forms.h"
#include "common/newton_schulz/products.h"

/// The Newton–Schulz iteration of Muon on a batch of whole matrices.
namespace ganymede::newton_schulz {

/// Where a matrix lies, and where its result goes; they do not overlap. Row-major.
struct Place {
  const float* in = nullptr;
  float* out = nullptr;
};

/// Equal matrices [rows, cols].
struct Batch {
  std::span<const Place> matrices;
  std::int64_t rows = 0, cols = 0;
};

/// `count` matrices one right behind the other, and their results likewise.
std::vector<Place> side_by_side(const float* in, float* out, std::int64_t count, std::int64_t rows, std::int64_t cols);

struct Settings {
  Schedule schedule;
  Form form = Form::automatic;
};

/// Memory between calls; grows to what the largest call needs and is kept. Used by one call at a time.
class Workspace {
 public:
  /// At least that many bytes, aligned to a cache line; their content is undefined.
  std::byte* reserve(std::int64_t bytes);
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t bytes_ = 0;
};

/// Bytes of workspace that orthogonalise() takes for `count` matrices: for as many as there are workers, at most.
std::int64_t workspace_bytes(const Products& products, const Settings& settings, std::int64_t count, std::int64_t rows,
                             std::int64_t cols);

/// Writes the orthogonalised matrices to `out`: with in / (‖in‖_F + 1e-7) = U·diag(s)·Vᵀ, U·diag(f(s))·Vᵀ with f as the
/// schedule's apply(). Where rows > cols, everything is done from the other side, as if on the transposed matrix. A
/// zero matrix gives zeros. A matrix with an element that is not finite becomes NaN throughout, so does one in which
/// the iteration overflows; the index of the first of them is returned, nothing if there is none. Allocates only
/// where the workspace has to grow. Each worker takes whole matrices, one after the other, so that a matrix stays in a
/// core's cache; those that are left when the workers do not divide the batch are computed by all of them together. A
/// matrix's result depends neither on that nor on the rest of the batch. Throws Error where the settings do not fit the
/// element type (see form_of()).
std::optional<std::int64_t> orthogonalise(Products& products, const Batch& batch, const Settings& settings,
                                          Workspace& workspace);

}  // namespace ganymede::newton_schulz
