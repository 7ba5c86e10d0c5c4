#include "services/optimizer/rehearsal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "common/base/error.h"
#include "common/placement/reductions.h"
#include "services/optimizer/plugin_guard.h"

namespace ganymede::optimizer {
namespace {

constexpr std::size_t rows = 8, columns = 6, elements = rows * columns, heads = 2;

/// Small values that differ.
std::vector<float> pattern(float scale, std::size_t seed) {
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < elements; ++i)
    values[i] = scale * static_cast<float>((i * 7 + seed) % 13 + 1) * (i % 2 == 0 ? 1 : -1);
  return values;
}

class Rehearsal {
 public:
  Rehearsal(const PreparedPlugin& prepared, const std::map<std::string, double>& hyper)
      : prepared_(prepared), table_(*prepared.plugin.table), state_(table_.slot_count), new_state_(table_.slot_count) {
    for (std::uint32_t i = 0; i < table_.hyper_parameter_count; ++i)
      hyper_.push_back(hyper.at(prepared.name + "." + table_.hyper_parameters[i].name));
    for (std::uint32_t i = 0; i < table_.slot_count; ++i)
      state_[i].assign(table_.slots[i].shape == GANYMEDE_PER_ROW ? rows : elements, 0);
  }

  void update(std::uint64_t step, bool query) {
    step_ = {sizeof(step_), table_.hyper_parameter_count, step, 1e-3, 0.1, 1, hyper_.data()};
    new_state_ = state_;
    first_phase(query);
    if (table_.apply_chunk) {
      if (table_.update_matrix) whole_matrix();
      second_phase(query);
    }
    state_ = new_state_;
  }

 private:
  GanymedeChunk chunk(bool query) {
    GanymedeChunk chunk{};
    chunk.size = sizeof(chunk);
    chunk.slots = table_.slot_count;
    chunk.count = elements;
    chunk.decayed = 1;
    chunk.rows = rows;
    chunk.columns = columns;
    chunk.master = master_.data();
    for (std::uint32_t i = 0; i < table_.reduction_count; ++i) {
      bool logit = std::string_view(table_.reductions[i]) == "attention_logit";
      counts_[i] = !logit ? 1 : query ? heads : 0;
      reductions_[i] = counts_[i] == 0 ? nullptr : values_.data();
    }
    chunk.reductions = reductions_.data();
    chunk.reduction_counts = counts_.data();
    if (query) {
      chunk.role = GANYMEDE_QUERY;
      chunk.query_heads = heads;
      chunk.key_heads = 1;
      chunk.rows_per_head = rows / heads;
    }
    return chunk;
  }

  /// Pointers to the slots of one shape; null for the others.
  template <typename Pointer>
  std::vector<Pointer> slots_of(std::uint32_t shape, std::vector<std::vector<float>>& state) {
    std::vector<Pointer> pointers;
    for (std::uint32_t i = 0; i < table_.slot_count; ++i)
      pointers.push_back(table_.slots[i].shape == shape ? state[i].data() : nullptr);
    return pointers;
  }

  void first_phase(bool query) {
    auto old = slots_of<const float*>(GANYMEDE_PER_ELEMENT, state_);
    auto fresh = slots_of<float*>(GANYMEDE_PER_ELEMENT, new_state_);
    GanymedeChunk call = chunk(query);
    call.gradient = gradient_.data();
    call.state = old.data();
    call.new_state = fresh.data();
    (table_.apply_chunk ? call.to_orthogonalise : call.new_master) = out_.data();
    InPlugin in_plugin(prepared_.original);
    expect_sound("update_chunk", table_.update_chunk(&step_, &call));
  }

  void whole_matrix() {
    auto old = slots_of<const float*>(GANYMEDE_PER_ROW, state_);
    auto fresh = slots_of<float*>(GANYMEDE_PER_ROW, new_state_);
    GanymedeMatrix matrix{sizeof(matrix), table_.slot_count, rows, columns, out_.data(), old.data(), fresh.data()};
    InPlugin in_plugin(prepared_.original);
    expect_sound("update_matrix", table_.update_matrix(&step_, &matrix));
  }

  void second_phase(bool query) {
    std::vector<float> orthogonal = out_;
    GanymedeChunk call = chunk(query);
    call.orthogonal = orthogonal.data();
    call.new_master = out_.data();
    InPlugin in_plugin(prepared_.original);
    expect_sound("apply_chunk", table_.apply_chunk(&step_, &call));
  }

  void expect_sound(const char* function, int code) const {
    const std::string& file = prepared_.original;
    if (code != 0)
      fail("optimizer plugin {} cannot compute even the update of a small matrix ({} returns {}): mend it", file,
           function, code);
    auto finite = [](const std::vector<float>& values) {
      return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
    };
    if (!finite(out_) || !std::ranges::all_of(new_state_, finite))
      fail(
          "optimizer plugin {} makes values that are not finite out of small ones ({}): mend it, or its settings in "
          "[optimizer.{}]",
          file, function, prepared_.name);
  }

  const PreparedPlugin& prepared_;
  const GanymedeOptimizer& table_;
  GanymedeStep step_{};
  std::vector<double> hyper_;
  std::vector<float> master_ = pattern(1e-2f, 3), gradient_ = pattern(1e-3f, 5), out_ = pattern(0, 0);
  std::vector<std::vector<float>> state_, new_state_;
  std::array<double, heads> values_ = {0.5, 0.5};
  std::array<const double*, placement::reduction_kinds> reductions_{};
  std::array<std::uint32_t, placement::reduction_kinds> counts_{};
};

}  // namespace

void rehearse(const PreparedPlugin& prepared, const std::map<std::string, double>& hyper) {
  for (bool query : {true, false}) {
    Rehearsal rehearsal(prepared, hyper);
    for (std::uint64_t step : {1, 2}) rehearsal.update(step, query);
  }
}

}  // namespace ganymede::optimizer
