#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "common/base/random.h"
#include "common/wire/bf16.h"
#include "common/wire/fp8.h"

/// One thread, 64 MiB of fp32 values: bytes read and written a second.
namespace ganymede::wire {
namespace {

constexpr std::int64_t columns = 1792, rows = (16 << 20) / columns, elements = rows * columns;

std::vector<float> values() {
  std::vector<float> drawn(elements);
  for (std::size_t i = 0; i < drawn.size(); i++)
    drawn[i] = static_cast<float>(philox(1, 2, i)[0] >> 8) * 0x1p-24f - 0.5f;
  return drawn;
}

void moved(benchmark::State& state, std::int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * elements);
}

void copy_fp32(benchmark::State& state) {
  std::vector<float> from = values(), to(elements);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size() * 4);
    benchmark::ClobberMemory();
  }
  moved(state, elements * 8);
}

void fp8_encode(benchmark::State& state) {
  std::vector<float> from = values();
  std::vector<std::byte> to(rows * fp8_row_bytes(columns));
  for (auto _ : state) {
    encode_fp8(from.data(), columns, 0, rows * fp8_blocks(columns), to.data());
    benchmark::ClobberMemory();
  }
  moved(state, elements * 4 + static_cast<std::int64_t>(to.size()));
}

template <class T>
void fp8_decode(benchmark::State& state) {
  std::vector<float> drawn = values();
  std::vector<std::byte> from(rows * fp8_row_bytes(columns));
  encode_fp8(drawn.data(), columns, 0, rows * fp8_blocks(columns), from.data());
  std::vector<T> to(elements);
  for (auto _ : state) {
    decode_fp8(from.data(), rows, columns, to.data());
    benchmark::ClobberMemory();
  }
  moved(state, elements * static_cast<std::int64_t>(sizeof(T)) + static_cast<std::int64_t>(from.size()));
}

void bf16_encode(benchmark::State& state) {
  std::vector<float> from = values();
  std::vector<std::uint16_t> to(elements);
  for (auto _ : state) {
    encode_bf16(from, to.data());
    benchmark::ClobberMemory();
  }
  moved(state, elements * 6);
}

void bf16_add(benchmark::State& state) {
  std::vector<float> sum = values();
  std::vector<std::uint16_t> part(elements);
  encode_bf16(sum, part.data());
  for (auto _ : state) {
    add_bf16(part, sum.data());
    benchmark::ClobberMemory();
  }
  moved(state, elements * 10);
}

BENCHMARK(copy_fp32)->Unit(benchmark::kMillisecond);
BENCHMARK(fp8_encode)->Unit(benchmark::kMillisecond);
BENCHMARK(fp8_decode<float>)->Unit(benchmark::kMillisecond);
BENCHMARK(fp8_decode<std::uint16_t>)->Unit(benchmark::kMillisecond);
BENCHMARK(bf16_encode)->Unit(benchmark::kMillisecond);
BENCHMARK(bf16_add)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ganymede::wire
