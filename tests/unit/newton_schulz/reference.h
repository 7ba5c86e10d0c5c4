#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/base/random.h"
#include "common/newton_schulz/coefficients.h"

/// Matrices in fp64, by plain loops: what the library is held against.
namespace ganymede::newton_schulz::reference {

struct Matrix {
  Matrix(std::int64_t rows, std::int64_t cols)
      : rows(rows), cols(cols), values(static_cast<std::size_t>(rows * cols)) {}
  double& at(std::int64_t row, std::int64_t col) { return values[static_cast<std::size_t>(row * cols + col)]; }
  double at(std::int64_t row, std::int64_t col) const { return values[static_cast<std::size_t>(row * cols + col)]; }

  std::int64_t rows, cols;
  std::vector<double> values;
};

inline Matrix transposed(const Matrix& a) {
  Matrix out(a.cols, a.rows);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t col = 0; col < a.cols; ++col) out.at(col, row) = a.at(row, col);
  }
  return out;
}

inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows, b.cols);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t k = 0; k < a.cols; ++k) {
      for (std::int64_t col = 0; col < b.cols; ++col) out.at(row, col) += a.at(row, k) * b.at(k, col);
    }
  }
  return out;
}

/// a · x + b · y.
inline Matrix sum(double a, const Matrix& x, double b, const Matrix& y) {
  Matrix out(x.rows, x.cols);
  for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = a * x.values[i] + b * y.values[i];
  return out;
}

inline double norm(const Matrix& a) {
  double squares = 0;
  for (const double value : a.values) squares += value * value;
  return std::sqrt(squares);
}

inline double largest(const Matrix& a) {
  double most = 0;
  for (const double value : a.values) most = std::max(most, std::abs(value));
  return most;
}

/// Muon's iteration as it is written down: the standard form.
inline Matrix orthogonalised(const Matrix& in, const Schedule& schedule) {
  const bool tall = in.rows > in.cols;
  Matrix x = tall ? transposed(in) : in;
  const double divisor = norm(x) + 1e-7;
  for (double& value : x.values) value /= divisor;
  for (const auto& [a, b, c] : schedule) {
    const auto square = product(x, transposed(x));
    x = sum(a, x, 1, product(sum(b, square, c, product(square, square)), x));
  }
  return tall ? transposed(x) : x;
}

/// Standard normal elements.
inline Matrix random_matrix(std::uint64_t key, std::int64_t rows, std::int64_t cols) {
  Matrix out(rows, cols);
  for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = normal(key, 7, i, INFINITY);
  return out;
}

/// Whole numbers from −4 to 4: products of a few of them are exact in fp32, so that their rank is what it should be.
inline Matrix random_integers(std::uint64_t key, std::int64_t rows, std::int64_t cols) {
  Matrix out(rows, cols);
  for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = std::floor(uniform(key, 8, i) * 9) - 4;
  return out;
}

/// Orthonormal columns that span those of `a`, which has at least as many rows (Gram–Schmidt, twice).
inline Matrix column_space(Matrix a) {
  for (std::int64_t col = 0; col < a.cols; ++col) {
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t before = 0; before < col; ++before) {
        double dot = 0;
        for (std::int64_t row = 0; row < a.rows; ++row) dot += a.at(row, before) * a.at(row, col);
        for (std::int64_t row = 0; row < a.rows; ++row) a.at(row, col) -= dot * a.at(row, before);
      }
    }
    double square = 0;
    for (std::int64_t row = 0; row < a.rows; ++row) square += a.at(row, col) * a.at(row, col);
    for (std::int64_t row = 0; row < a.rows; ++row) a.at(row, col) /= std::sqrt(square);
  }
  return a;
}

/// Full rank, singular values from 1 down to `least`, evenly in the logarithm.
inline Matrix with_spectrum(std::uint64_t key, std::int64_t rows, std::int64_t cols, double least) {
  const std::int64_t rank = std::min(rows, cols);
  Matrix left = column_space(random_matrix(key, rows, rank));
  const Matrix right = column_space(random_matrix(key + 1, cols, rank));
  for (std::int64_t i = 0; i < rank; ++i) {
    const double value = rank == 1 ? 1 : std::pow(least, static_cast<double>(i) / static_cast<double>(rank - 1));
    for (std::int64_t row = 0; row < rows; ++row) left.at(row, i) *= value;
  }
  return product(left, transposed(right));
}

/// The part of `a` that lies in the space of `columns` and `rows` (orthonormal columns each).
inline Matrix inside(const Matrix& a, const Matrix& columns, const Matrix& rows) {
  const auto core = product(product(transposed(columns), a), rows);
  return product(product(columns, core), transposed(rows));
}

inline std::vector<float> to_fp32(const Matrix& a) { return {a.values.begin(), a.values.end()}; }

inline Matrix from_fp32(const float* values, std::int64_t rows, std::int64_t cols) {
  Matrix out(rows, cols);
  std::copy(values, values + rows * cols, out.values.begin());
  return out;
}

}  // namespace ganymede::newton_schulz::reference
