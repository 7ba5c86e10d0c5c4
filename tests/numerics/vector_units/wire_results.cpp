#include <array>
#include <cstdint>
#include <cstring>

#include "common/collectives/shm/copies.h"
#include "common/collectives/sums.h"
#include "common/wire/bf16.h"
#include "common/wire/fp8.h"
#include "tests/numerics/vector_units/inputs.h"
#include "tests/numerics/vector_units/results.h"

namespace ganymede::vector_units {
namespace {

using collectives::Element;
using Value = float (*)(std::uint64_t, std::uint64_t);

constexpr std::size_t rows = 3;

std::vector<float> values_of(Value value, std::size_t count, std::uint64_t stream) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; i++) values[i] = value(i, stream);
  return values;
}

template <class T>
Result result_of(const char* what, std::size_t count, const std::vector<T>& values) {
  Result result{std::string(what) + ", " + std::to_string(count) + " elements", {}};
  result.bytes.resize(values.size() * sizeof(T));
  std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
  return result;
}

void bf16_results(std::size_t count, std::vector<Result>& results) {
  std::vector<float> values = values_of(any_bits, count, 1), sum = values_of(magnitude, count, 2);
  std::vector<std::uint16_t> half(count), streamed(count + 1);
  wire::encode_bf16(values, half.data());
  wire::stream_bf16(values, streamed.data() + 1);
  std::vector<float> back(count), copied(count + 1);
  wire::decode_bf16(half, back.data());
  wire::stream_fp32(values, copied.data() + 1);
  wire::finish_stream();
  std::vector<std::uint16_t> finite(count);
  wire::encode_bf16(values_of(magnitude, count, 3), finite.data());
  wire::add_bf16(finite, sum.data());
  results.push_back(result_of("bf16 encoded", count, half));
  results.push_back(result_of("bf16 streamed", count, streamed));
  results.push_back(result_of("bf16 decoded", count, back));
  results.push_back(result_of("bf16 added", count, sum));
  results.push_back(result_of("fp32 streamed", count, copied));
}

void fp8_results(Value value, const char* encoded, const char* decoded, std::size_t count,
                 std::vector<Result>& results) {
  auto columns = static_cast<std::int64_t>(count);
  std::vector<float> values = values_of(value, rows * count, 4), back(rows * count);
  std::vector<std::byte> bytes(rows * static_cast<std::size_t>(wire::fp8_row_bytes(columns)));
  wire::encode_fp8(values.data(), columns, 0, static_cast<std::int64_t>(rows) * wire::fp8_blocks(columns),
                   bytes.data());
  wire::decode_fp8(bytes.data(), rows, columns, back.data());
  std::vector<std::uint16_t> half(rows * count);
  wire::decode_fp8(bytes.data(), rows, columns, half.data());
  results.push_back(result_of(encoded, count, bytes));
  results.push_back(result_of(decoded, count, back));
  results.push_back(result_of((std::string(decoded) + " to bf16").c_str(), count, half));
}

void sum_results(std::size_t count, std::vector<Result>& results) {
  std::array<std::vector<float>, 3> single;
  std::array<std::vector<std::uint16_t>, 3> half;
  std::array<const std::byte*, 3> single_terms{}, half_terms{};
  for (std::size_t i = 0; i < single.size(); i++) {
    single[i] = values_of(magnitude, count, 5 + i);
    half[i].resize(count);
    wire::encode_bf16(single[i], half[i].data());
    single_terms[i] = reinterpret_cast<const std::byte*>(single[i].data());
    half_terms[i] = reinterpret_cast<const std::byte*>(half[i].data());
  }
  std::vector<float> sum(count);
  collectives::sum_in_order(Element::fp32, single_terms, count, sum.data());
  results.push_back(result_of("sum of fp32", count, sum));
  collectives::sum_in_order(Element::bf16, half_terms, count, sum.data());
  results.push_back(result_of("sum of bf16", count, sum));
}

void copy_results(std::size_t count, std::vector<Result>& results) {
  std::vector<float> values = values_of(any_bits, 5 * count, 9), copied(5 * count + 1);
  collectives::copy_past_caches(reinterpret_cast<std::byte*>(copied.data()) + 1,
                                reinterpret_cast<const std::byte*>(values.data()), 5 * count * sizeof(float));
  results.push_back(result_of("copy", count, copied));
}

}  // namespace

std::vector<Result> wire_results() {
  std::vector<Result> results;
  for (std::size_t count : lengths) {
    bf16_results(count, results);
    fp8_results(magnitude, "fp8 encoded", "fp8 decoded", count, results);
    fp8_results(any_bits, "fp8 of any bits", "fp8 of any bits decoded", count, results);
    sum_results(count, results);
    copy_results(count, results);
  }
  return results;
}

}  // namespace ganymede::vector_units
