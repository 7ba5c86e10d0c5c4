#include "common/newton_schulz/orthogonalise.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "common/base/error.h"
#include "common/newton_schulz/elements.h"

namespace ganymede::newton_schulz {

namespace {

constexpr std::int64_t line = 64;  // bytes
constexpr double norm_margin = 1e-7;

std::int64_t padded(std::int64_t bytes) { return (bytes + line - 1) / line * line; }

int squares_of(Form form) { return form == Form::standard ? 2 : 4; }

/// The iteration on one batch whose X has been loaded.
class Iteration {
 public:
  Iteration(Products& products, const Batch& batch, Form form, std::byte* memory)
      : products_(products), count_(batch.count), tall_(batch.rows > batch.cols) {
    const std::int64_t n = std::min(batch.rows, batch.cols), bytes = count_ * bytes_of(products.element());
    const auto take = [&](std::int64_t rows, std::int64_t cols) {
      return Matrices{std::exchange(memory, memory + padded(rows * cols * bytes)), rows, cols};
    };
    x_ = take(batch.rows, batch.cols);
    next_x_ = take(batch.rows, batch.cols);
    for (int i = 0; i < squares_of(form); ++i) squares_[i] = take(n, n);
  }

  Matrices x() const { return x_; }

  void standard_step(const Coefficients& step) {
    const auto square = squares_[0], polynomial = squares_[1];
    square_x(square);
    if (step.c == 0) {
      multiply_x(square, static_cast<float>(step.b), static_cast<float>(step.a));
    } else {
      multiply({square}, {square}, polynomial, static_cast<float>(step.c), static_cast<float>(step.b), square);
      multiply_x(polynomial, 1, static_cast<float>(step.a));
    }
  }

  /// The steps [begin, end) of a schedule, between two multiplications of X.
  void gram_segment(const Coefficients* begin, const Coefficients* end) {
    auto &gram = squares_[0], &polynomial = squares_[1], &product = squares_[2], &spare = squares_[3];
    square_x(gram);
    for (const auto* step = begin; step < end; ++step) {
      const auto factor = step == begin ? product : polynomial;
      evaluate(*step, gram, factor);
      if (step > begin) {
        multiply({factor}, {product}, spare);
        std::swap(product, spare);
      }
      if (step + 1 == end) break;
      multiply({factor}, {gram}, spare);
      multiply({spare}, {factor}, gram);
    }
    multiply_x(product, 1, 0);
  }

 private:
  /// out = alpha · left · right + beta · addend, a symmetric matrix.
  void multiply(const Operand& left, const Operand& right, const Matrices& out, float alpha = 1, float beta = 0,
                const Matrices& addend = {}) {
    products_.multiply({count_, left, right, out, alpha, beta, addend, true});
  }

  /// XXᵀ, or XᵀX of a tall X.
  void square_x(const Matrices& out) { multiply({x_, tall_}, {x_, !tall_}, out); }

  /// X = alpha · square · X + beta · X, or from the right for a tall X.
  void multiply_x(const Matrices& square, float alpha, float beta) {
    products_.multiply(
        {count_, {tall_ ? x_ : square}, {tall_ ? square : x_}, next_x_, alpha, beta, beta == 0 ? Matrices{} : x_});
    std::swap(x_, next_x_);
  }

  /// P = aI + bG + cG².
  void evaluate(const Coefficients& step, const Matrices& gram, const Matrices& out) {
    const bool quintic = step.c != 0;
    if (quintic) multiply({gram}, {gram}, out, static_cast<float>(step.c), static_cast<float>(step.b), gram);
    const auto& in = quintic ? out : gram;
    const float scale = quintic ? 1 : static_cast<float>(step.b);
    const std::int64_t size = in.rows;
    const auto one = [&](std::int64_t i) {
      const std::int64_t offset = i * size * size;
      scale_and_shift(static_cast<const float*>(in.data) + offset, size, scale, static_cast<float>(step.a),
                      static_cast<float*>(out.data) + offset);
    };
    products_.for_each(count_, std::cref(one));
  }

  Products& products_;
  std::int64_t count_;
  bool tall_;
  Matrices x_, next_x_;
  Matrices squares_[4];
};

void lower_to(std::atomic<std::int64_t>& least, std::int64_t value) {
  auto seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

/// The first of `count` matrices that one(i) says are not finite, each of which it fills with NaN; `count` if all are.
template <class One>
std::int64_t first_not_finite(Products& products, const Batch& batch, const One& one) {
  const std::int64_t elements = batch.rows * batch.cols;
  std::atomic<std::int64_t> first{batch.count};
  const auto checked = [&](std::int64_t i) {
    float* out = batch.out + i * elements;
    if (one(i, out)) return;
    std::fill(out, out + elements, std::numeric_limits<float>::quiet_NaN());
    lower_to(first, i);
  };
  products.for_each(batch.count, std::cref(checked));
  return first;
}

/// One row or column has one singular value, its norm: nothing is iterated but that, in fp64.
std::int64_t orthogonalise_vectors(Products& products, const Batch& batch, const Schedule& schedule) {
  const std::int64_t elements = batch.rows * batch.cols;
  return first_not_finite(products, batch, [&](std::int64_t i, float* out) {
    const float* in = batch.in + i * elements;
    const double norm = frobenius_norm(in, elements), value = norm / (norm + norm_margin);
    const double factor = value == 0 ? 0 : apply(schedule, value) / norm;
    load_scaled(in, elements, factor, Element::fp32, out);
    return std::all_of(out, out + elements, [](float element) { return std::isfinite(element); });
  });
}

void load(Products& products, const Batch& batch, void* x) {
  const std::int64_t elements = batch.rows * batch.cols;
  const auto one = [&](std::int64_t i) {
    const double norm = frobenius_norm(batch.in + i * elements, elements);
    // An infinite element times the scale of 0 is NaN, a NaN makes all NaN: unload() finds either.
    load_scaled(batch.in + i * elements, elements, 1 / (norm + norm_margin), products.element(),
                static_cast<std::byte*>(x) + i * elements * bytes_of(products.element()));
  };
  products.for_each(batch.count, std::cref(one));
}

/// Index of the first matrix that is not finite; batch.count if all are.
std::int64_t unload(Products& products, const Batch& batch, const void* x) {
  const std::int64_t elements = batch.rows * batch.cols, bytes = elements * bytes_of(products.element());
  return first_not_finite(products, batch, [&](std::int64_t i, float* out) {
    return store(static_cast<const std::byte*>(x) + i * bytes, elements, products.element(), out);
  });
}

}  // namespace

std::byte* Workspace::reserve(std::int64_t bytes) {
  if (bytes > bytes_) {
    memory_.reset();
    bytes_ = 0;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(line, static_cast<std::size_t>(padded(bytes)))));
    if (!memory_) throw std::bad_alloc();
    bytes_ = padded(bytes);
  }
  return memory_.get();
}

std::int64_t workspace_bytes(const Products& products, const Settings& settings, std::int64_t count, std::int64_t rows,
                             std::int64_t cols) {
  const auto form = form_of(settings.form, products.element(), rows, cols, settings.schedule);
  const std::int64_t n = std::min(rows, cols), bytes = count * bytes_of(products.element());
  if (n == 1) return 0;
  return 2 * padded(rows * cols * bytes) + squares_of(form) * padded(n * n * bytes);
}

std::optional<std::int64_t> orthogonalise(Products& products, const Batch& batch, const Settings& settings,
                                          Workspace& workspace) {
  if (batch.count == 0 || batch.rows == 0 || batch.cols == 0) return std::nullopt;
  const auto& schedule = settings.schedule;
  const auto form = form_of(settings.form, products.element(), batch.rows, batch.cols, schedule);
  const auto result = [&](std::int64_t first) { return first == batch.count ? std::nullopt : std::optional(first); };
  if (std::min(batch.rows, batch.cols) == 1) return result(orthogonalise_vectors(products, batch, schedule));
  auto* memory = workspace.reserve(workspace_bytes(products, settings, batch.count, batch.rows, batch.cols));
  Iteration iteration(products, batch, form, memory);
  load(products, batch, iteration.x().data);
  if (form == Form::standard) {
    for (const auto& step : schedule) iteration.standard_step(step);
  } else {
    const auto* const end = schedule.data() + schedule.size();
    for (const auto* at = schedule.data(); at < end; at += std::min<std::ptrdiff_t>(gram_steps, end - at)) {
      iteration.gram_segment(at, at + std::min<std::ptrdiff_t>(gram_steps, end - at));
    }
  }
  return result(unload(products, batch, iteration.x().data));
}

}  // namespace ganymede::newton_schulz
