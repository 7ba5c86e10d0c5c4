#include "tests/perf/optimizer/measures.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "common/base/error.h"
#include "common/base/exact_sum.h"
#include "common/wire/bf16.h"
#include "services/optimizer/working_copy.h"
#include "services/worker/engine/gradient_norm.h"
#include "tests/support/tree.h"

namespace ganymede::optimizer {
namespace {

EngineOptions options_of(int threads) {
  EngineOptions options;
  options.threads = threads;
  return options;
}

constexpr int copies = 4;  // that a run makes of a quarter of the bytes

}  // namespace

Measures::Measures(int millions, int threads)
    : threads_(threads),
      cell_(millions, threads),
      plugin_(load_plugin(GANYMEDE_BINARY_DIR "/plugins/adamw.so")),
      engine_(cell_.placement, {plugin_.table}, cell_.memory, options_of(threads)),
      copied_from_(cell_.elements() * update_bytes / 2 / copies / sizeof(float), 1.0f),
      copied_to_(copied_from_.size()) {}

double Measures::run(const std::string& name) {
  const std::map<std::string, std::function<void()>> table = {
      {"copy", [this] { copy(false); }},
      {"streamed_copy", [this] { copy(true); }},
      {"update", [this] { step(1); }},
      {"in_place", [this] { in_place(true); }},
      {"unpublished", [this] { in_place(false); }},
      {"publishing_pass", [this] { publishing_pass(); }},
      {"whole", [this] { whole(); }},
  };
  auto measure = table.find(name);
  if (measure == table.end()) fail_usage("there is no measure '{}'", name);
  auto began = std::chrono::steady_clock::now();
  measure->second();
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  if (cell_.gradients()[0] == 0) std::ranges::fill(cell_.gradients(), 1e-3f);
  return taken.count();
}

/// work(from, to) in each thread at once, for its part of 0 … count - 1.
template <class Work>
void Measures::in_threads(const Work& work, std::size_t count) {
  auto parts = static_cast<std::size_t>(threads_);
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < parts; i++) {
    threads.emplace_back([&work, count, parts, i] { work(count * i / parts, count * (i + 1) / parts); });
  }
  work(std::size_t{0}, count / parts);
}

void Measures::copy(bool streamed) {
  in_threads(
      [&](std::size_t from, std::size_t to) {
        std::span<const float> part{&copied_from_[from], to - from};
        for (int i = 0; i < copies; i++) {
          if (streamed) {
            wire::stream_fp32(part, &copied_to_[from]);
          } else {
            std::ranges::copy(part, &copied_to_[from]);
          }
        }
        wire::finish_stream();
      },
      copied_from_.size());
}

void Measures::step(double clip_factor) {
  cell_.decide(clip_factor);
  while (engine_.advance().action.kind != step_protocol::UpdateActionKind::await_decision) continue;
}

void Measures::update_in_place(const placement::Chunk& chunk, bool published) {
  const double hyper[] = {0.9, 0.95, 1e-8};
  GanymedeStep step = {sizeof(GanymedeStep), 3, cell_.memory.control->decided_step.load() + 1, 1e-3, 0.1, 1, hyper};
  float* master = cell_.memory.master.data() + chunk.shard_offset;
  std::array<float*, 2> new_state = {cell_.memory.state[0].data() + chunk.shard_offset,
                                     cell_.memory.state[1].data() + chunk.shard_offset};
  std::array<const float*, 2> state = {new_state[0], new_state[1]};
  const float* gradient = cell_.memory.gradients.data() + chunk.shard_offset;
  GanymedeChunk call{};
  call.size = sizeof(call);
  call.slots = 2;
  call.count = static_cast<std::uint64_t>(chunk.count);
  call.decayed = 1;
  call.gradient = gradient;
  call.master = master;
  call.new_master = master;
  call.state = state.data();
  call.new_state = new_state.data();
  if (plugin_.table->update_chunk(&step, &call) != 0) fail("the plugin refuses the benchmark's chunk");
  if (!published) return;
  publish(cell_.memory, cell_.placement, chunk.bucket, chunk.shard_offset,
          {master, static_cast<std::size_t>(chunk.count)});
}

void Measures::in_place(bool published) {
  in_threads(
      [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; i++) {
          const placement::Chunk& chunk = cell_.placement.chunks[i];
          if (chunk.parameter >= 0) update_in_place(chunk, published);
        }
        finish_publishing();
      },
      cell_.placement.chunks.size());
}

void Measures::publishing_pass() {
  in_threads(
      [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; i++) {
          const placement::Chunk& chunk = cell_.placement.chunks[i];
          auto first = static_cast<std::size_t>(chunk.shard_offset), count = static_cast<std::size_t>(chunk.count);
          publish(cell_.memory, cell_.placement, chunk.bucket, chunk.shard_offset,
                  cell_.memory.master.subspan(first, count));
        }
        finish_publishing();
      },
      cell_.placement.chunks.size());
}

/// Over the rows of a matrix, as the worker does it; exact, so threads may share them.
double Measures::gradient_norm() {
  ExactSum all;
  std::mutex joining;
  auto length = static_cast<std::size_t>(cell_.row_elements());
  in_threads(
      [&](std::size_t from, std::size_t to) {
        ExactSum sum;
        for (std::size_t row = from; row < to; row++) {
          sum.add(worker::sum_of_squares(cell_.gradients().subspan(row * length, length)));
        }
        std::lock_guard lock(joining);
        all.merge(sum);
      },
      cell_.elements() / length);
  return std::sqrt(all.value());
}

void Measures::whole() {
  step(std::min(1.0, 1 / (gradient_norm() + 1e-6)));
  auto clear = [&](std::size_t from, std::size_t to) {
    std::memset(&cell_.gradients()[from], 0, (to - from) * sizeof(float));
  };
  in_threads(clear, cell_.elements());
}

}  // namespace ganymede::optimizer
