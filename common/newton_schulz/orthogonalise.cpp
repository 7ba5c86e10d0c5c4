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

void lower_to(std::atomic<std::int64_t>& least, std::int64_t value) {
  auto seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

std::int64_t elements_of(const Batch& batch) { return batch.rows * batch.cols; }

/// Of a matrix that is not finite; false.
bool fill_with_nan(const Batch& batch, const Place& place) {
  std::fill_n(place.out, elements_of(batch), std::numeric_limits<float>::quiet_NaN());
  return false;
}

/// The iteration on the matrices [first, first + count) of a batch.
class Iteration {
 public:
  /// alone: everything on the calling thread, for any number of which it may be done at once.
  Iteration(Products& products, const Batch& batch, bool alone, std::int64_t first, std::int64_t count)
      : products_(products), batch_(batch), alone_(alone), first_(first), count_(count) {}

  /// Index of the first matrix that is not finite; the batch's size if all are.
  std::int64_t run(const Schedule& schedule, Form form, std::byte* memory) {
    lay_out(form, memory);
    for_each([&](std::int64_t i) { load(i); });
    const auto* const end = schedule.data() + schedule.size();
    for (const auto* at = schedule.data(); at < end;) {
      const auto steps = form == Form::standard ? 1 : std::min<std::ptrdiff_t>(gram_steps, end - at);
      form == Form::standard ? standard_step(*at) : gram_segment(at, at + steps);
      at += steps;
    }
    std::atomic<std::int64_t> bad{std::ssize(batch_.matrices)};
    for_each([&](std::int64_t i) {
      if (!unload(i)) lower_to(bad, first_ + i);
    });
    return bad;
  }

 private:
  void lay_out(Form form, std::byte* memory) {
    const std::int64_t n = std::min(batch_.rows, batch_.cols), bytes = count_ * bytes_of(products_.element());
    const auto take = [&](std::int64_t rows, std::int64_t cols) {
      return Matrices{std::exchange(memory, memory + padded(rows * cols * bytes)), rows, cols};
    };
    x_ = take(batch_.rows, batch_.cols);
    next_x_ = take(batch_.rows, batch_.cols);
    for (int i = 0; i < squares_of(form); ++i) squares_[i] = take(n, n);
  }

  template <class Body>
  void for_each(const Body& body) {
    if (!alone_) return products_.for_each(count_, std::cref(body));
    for (std::int64_t i = 0; i < count_; ++i) body(i);
  }

  void multiply(const Product& product) { alone_ ? products_.multiply_alone(product) : products_.multiply(product); }

  std::byte* x_of(std::int64_t i) const {
    return static_cast<std::byte*>(x_.data) + i * x_.rows * x_.cols * bytes_of(products_.element());
  }

  void load(std::int64_t i) {
    const float* in = place(i).in;
    const double norm = frobenius_norm(in, elements_of(batch_));
    // An infinite element times the scale of 0 is NaN, a NaN makes all NaN: unload() finds either.
    load_scaled(in, elements_of(batch_), 1 / (norm + norm_margin), products_.element(), x_of(i));
  }

  bool unload(std::int64_t i) {
    return store(x_of(i), elements_of(batch_), products_.element(), place(i).out) || fill_with_nan(batch_, place(i));
  }

  const Place& place(std::int64_t i) const { return batch_.matrices[static_cast<std::size_t>(first_ + i)]; }

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

  /// out = alpha · left · right + beta · addend, a symmetric matrix.
  void multiply(const Operand& left, const Operand& right, const Matrices& out, float alpha = 1, float beta = 0,
                const Matrices& addend = {}) {
    multiply({count_, left, right, out, alpha, beta, addend, true});
  }

  /// XXᵀ, or XᵀX of a tall X.
  void square_x(const Matrices& out) { multiply({x_, is_tall()}, {x_, !is_tall()}, out); }

  /// X = alpha · square · X + beta · X, or from the right for a tall X.
  void multiply_x(const Matrices& square, float alpha, float beta) {
    const bool tall = is_tall();
    multiply({count_, {tall ? x_ : square}, {tall ? square : x_}, next_x_, alpha, beta, beta == 0 ? Matrices{} : x_});
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
    for_each(one);
  }

  bool is_tall() const { return batch_.rows > batch_.cols; }

  Products& products_;
  const Batch& batch_;
  bool alone_;
  std::int64_t first_, count_;
  Matrices x_, next_x_;
  Matrices squares_[4];
};

/// One row or column has one singular value, its norm: nothing is iterated but that, in fp64.
std::int64_t orthogonalise_vectors(Products& products, const Batch& batch, const Schedule& schedule) {
  const std::int64_t elements = elements_of(batch);
  std::atomic<std::int64_t> bad{std::ssize(batch.matrices)};
  const auto one = [&](std::int64_t i) {
    const auto& [in, out] = batch.matrices[static_cast<std::size_t>(i)];
    const double norm = frobenius_norm(in, elements), value = norm / (norm + norm_margin);
    const double factor = value == 0 ? 0 : apply(schedule, value) / norm;
    load_scaled(in, elements, factor, Element::fp32, out);
    if (std::all_of(out, out + elements, [](float element) { return std::isfinite(element); })) return;
    fill_with_nan(batch, {in, out});
    lower_to(bad, i);
  };
  products.for_each(std::ssize(batch.matrices), std::cref(one));
  return bad;
}

/// Bytes that one matrix takes, and at most the share of each of several.
std::int64_t bytes_a_matrix(Element element, Form form, std::int64_t rows, std::int64_t cols) {
  const std::int64_t n = std::min(rows, cols), bytes = bytes_of(element);
  return 2 * padded(rows * cols * bytes) + squares_of(form) * padded(n * n * bytes);
}

/// Each worker takes the next of the first `count` matrices. Index of the first that is not finite.
std::int64_t each_alone(Products& products, const Batch& batch, std::int64_t count, const Schedule& schedule, Form form,
                        std::byte* memory) {
  const std::int64_t bytes = bytes_a_matrix(products.element(), form, batch.rows, batch.cols);
  std::atomic<std::int64_t> next{0}, bad{std::ssize(batch.matrices)};
  const auto worker = [&](std::int64_t w) {
    for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      lower_to(bad, Iteration(products, batch, true, i, 1).run(schedule, form, memory + w * bytes));
    }
  };
  products.for_each(std::min<std::int64_t>(products.workers(), count), std::cref(worker));
  return bad;
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
  if (std::min(rows, cols) == 1) return 0;
  const auto form = form_of(settings.form, products.element(), rows, cols, settings.schedule);
  return std::min<std::int64_t>(count, products.workers()) * bytes_a_matrix(products.element(), form, rows, cols);
}

std::optional<std::int64_t> orthogonalise(Products& products, const Batch& batch, const Settings& settings,
                                          Workspace& workspace) {
  const std::int64_t count = std::ssize(batch.matrices);
  if (count == 0 || batch.rows == 0 || batch.cols == 0) return std::nullopt;
  const auto& schedule = settings.schedule;
  const auto form = form_of(settings.form, products.element(), batch.rows, batch.cols, schedule);
  std::int64_t bad = count;
  if (std::min(batch.rows, batch.cols) == 1) {
    bad = orthogonalise_vectors(products, batch, schedule);
  } else {
    auto* memory = workspace.reserve(workspace_bytes(products, settings, count, batch.rows, batch.cols));
    const std::int64_t together = count % products.workers(), alone = count - together;
    if (alone > 0) bad = each_alone(products, batch, alone, schedule, form, memory);
    if (together > 0)
      bad = std::min(bad, Iteration(products, batch, false, alone, together).run(schedule, form, memory));
  }
  return bad == count ? std::nullopt : std::optional(bad);
}

std::vector<Place> side_by_side(const float* in, float* out, std::int64_t count, std::int64_t rows, std::int64_t cols) {
  std::vector<Place> places;
  for (std::int64_t i = 0; i < count; ++i) places.push_back({in + i * rows * cols, out + i * rows * cols});
  return places;
}

}  // namespace ganymede::newton_schulz
