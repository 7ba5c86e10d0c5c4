#pragma once

#include <cstdint>
#include <functional>

/// Matrix products as orthogonalise() needs them. Implementations: cblas/, and services/worker/muon over libtorch.
namespace ganymede::newton_schulz {

enum class Element { fp32, bf16 };

constexpr std::int64_t bytes_of(Element element) { return element == Element::fp32 ? 4 : 2; }

/// A batch of equal matrices [rows, cols], row-major, one right behind the other. Nothing is owned.
struct Matrices {
  void* data = nullptr;
  std::int64_t rows = 0, cols = 0;
};

struct Operand {
  Matrices matrices;
  bool transposed = false;
};

/// out = alpha · op(left) · op(right) + beta · addend for each matrix of the batch; all of one element type.
struct Product {
  std::int64_t count = 0;
  Operand left, right;
  Matrices out;  // overlaps none of the others
  float alpha = 1, beta = 0;
  Matrices addend;         // shaped as `out`; not read where beta is 0
  bool symmetric = false;  // in exact arithmetic `out` equals its transpose: half of it may be computed, and mirrored
};

/// An implementation's results for a matrix depend on this matrix alone: not on the batch around it, nor on threads.
/// Used by one thread at a time, but for multiply_alone().
class Products {
 public:
  virtual ~Products() = default;

  /// What the matrices of a Product hold. Sums inside a product are fp32 in any case.
  virtual Element element() const = 0;
  /// On all threads.
  virtual void multiply(const Product& product) = 0;
  /// The same bits on the calling thread alone; for the body of for_each().
  virtual void multiply_alone(const Product& product) = 0;
  /// How many tasks for_each() runs at once, at most.
  virtual int workers() const = 0;
  /// Calls body(0) … body(tasks − 1), in any order and on any threads; returns when all are done.
  virtual void for_each(std::int64_t tasks, const std::function<void(std::int64_t)>& body) = 0;
};

}  // namespace ganymede::newton_schulz
