#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/newton_schulz/orthogonalise.h"
#include "tests/unit/newton_schulz/reference.h"

/// What the suite and the tests of one implementation share.
namespace ganymede::newton_schulz {

struct Shape {
  std::int64_t rows = 0, cols = 0;
};

inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.rows << " x " << shape.cols;
}

inline const Schedule& schedule_of(const std::string& name) {
  for (const auto& known : named_schedules()) {
    if (known.name == name) return known.steps;
  }
  throw std::runtime_error("no schedule " + name);
}

constexpr Form both_forms[] = {Form::standard, Form::gram};
inline const char* name_of(Form form) { return form == Form::standard ? "standard" : "gram"; }

struct Outcome {
  std::vector<float> values;
  std::optional<std::int64_t> not_finite;
};

inline Outcome run(Products& products, const std::vector<float>& in, Shape shape, const Settings& settings) {
  Outcome outcome{std::vector<float>(in.size(), 77), {}};
  Workspace workspace;
  const auto count = static_cast<std::int64_t>(in.size()) / (shape.rows * shape.cols);
  const auto places = side_by_side(in.data(), outcome.values.data(), count, shape.rows, shape.cols);
  outcome.not_finite = orthogonalise(products, {places, shape.rows, shape.cols}, settings, workspace);
  return outcome;
}

/// ours − exact, for one matrix that was given in fp32.
inline reference::Matrix difference(const std::vector<float>& ours, const reference::Matrix& exact) {
  return reference::sum(1, reference::from_fp32(ours.data(), exact.rows, exact.cols), -1, exact);
}

/// A matrix of the given rank whose elements are exact in fp32, and orthonormal bases of its columns and rows.
struct Deficient {
  Deficient(std::uint64_t key, Shape shape, std::int64_t rank)
      : Deficient(reference::random_integers(key, shape.rows, rank),
                  reference::random_integers(key + 1, shape.cols, rank)) {}
  Deficient(const reference::Matrix& left, const reference::Matrix& right)
      : matrix(reference::product(left, reference::transposed(right))),
        columns(reference::column_space(left)),
        rows(reference::column_space(right)) {}

  reference::Matrix matrix, columns, rows;
};

}  // namespace ganymede::newton_schulz
