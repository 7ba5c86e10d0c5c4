#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "services/optimizer/plugins/adamw/adamw_kernel.h"
#include "services/optimizer/plugins/lion/lion_kernel.h"
#include "services/optimizer/plugins/sgd/sgd_kernel.h"
#include "tests/numerics/vector_units/inputs.h"
#include "tests/numerics/vector_units/results.h"

namespace ganymede::vector_units {
namespace {

constexpr std::uint64_t steps = 3;

struct Case {
  const char* name;
  Optimizers::Update update;
  std::vector<double> hyper;
  std::size_t slots;
};

std::vector<Case> cases_of(const Optimizers& optimizers) {
  return {
      {"adamw", optimizers.adamw, {0.9, 0.95, 1e-8}, 2},
      {"lion", optimizers.lion, {0.9, 0.99}, 1},
      {"sgd", optimizers.sgd, {0.9, 0.5, 0}, 1},
      {"sgd with nesterov", optimizers.sgd, {0.9, 0, 1}, 1},
  };
}

/// Master, then state, of `count` elements; each array begins at an odd element of its own memory.
struct Arrays {
  Arrays(std::size_t count, std::size_t slots) : values(1 + slots, std::vector<float>(count + 3)) {
    for (std::size_t i = 0; i < count; i++) master()[i] = magnitude(i, 1);
  }
  float* at(std::size_t array) { return values[array].data() + 1 + array; }
  float* master() { return at(0); }
  std::vector<std::vector<float>> values;
};

void update(const Case& test, const GanymedeStep& step, std::size_t count, Arrays& arrays) {
  Arrays before = arrays;
  std::vector<float> gradient(count);
  for (std::size_t i = 0; i < count; i++) gradient[i] = magnitude(i, 1 + step.step);
  std::array<const float*, 2> state{};
  std::array<float*, 2> new_state{};
  for (std::size_t i = 0; i < test.slots; i++) {
    state[i] = before.at(1 + i);
    new_state[i] = arrays.at(1 + i);
  }
  GanymedeChunk chunk{};
  chunk.size = sizeof(chunk);
  chunk.slots = static_cast<std::uint32_t>(test.slots);
  chunk.count = count;
  chunk.decayed = count % 3 == 0 ? 0 : 1;
  chunk.gradient = gradient.data();
  chunk.master = before.master();
  chunk.state = state.data();
  chunk.new_master = arrays.master();
  chunk.new_state = new_state.data();
  test.update(step, chunk);
}

Result result_of(const std::string& name, std::size_t count, Arrays& arrays) {
  Result result{name, std::vector<std::byte>(arrays.values.size() * count * sizeof(float))};
  for (std::size_t i = 0; i < arrays.values.size(); i++) {
    std::memcpy(result.bytes.data() + i * count * sizeof(float), arrays.at(i), count * sizeof(float));
  }
  return result;
}

}  // namespace

Optimizers kernels() { return {adamw::update, lion::update, sgd::update}; }

std::vector<Result> optimizer_results(const Optimizers& optimizers) {
  std::vector<Result> results;
  for (const Case& test : cases_of(optimizers)) {
    for (std::size_t count : lengths) {
      Arrays arrays(count, test.slots);
      for (std::uint64_t number = 1; number <= steps; number++) {
        GanymedeStep step{};
        step.size = sizeof(step);
        step.hyper_count = static_cast<std::uint32_t>(test.hyper.size());
        step.step = number;
        step.lr = 3e-3;
        step.weight_decay = 0.1;
        step.gradient_scale = 0.3;
        step.hyper = test.hyper.data();
        update(test, step, count, arrays);
        std::string name = std::string(test.name) + ", " + std::to_string(count) + " elements, step ";
        results.push_back(result_of(name + std::to_string(number), count, arrays));
      }
    }
  }
  return results;
}

}  // namespace ganymede::vector_units
