#include "tests/unit/engine/test_cell.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/cell/layouts.h"
#include "common/os/fd.h"
#include "common/os/futex.h"
#include "common/service/settings.h"
#include "common/wire/bf16.h"
#include "common/wire/bucket_form.h"

namespace ganymede::worker {

config::Config tiny_config() {
  config::Config config;
  config.model.vocabulary = 32;
  config.model.hidden = 32;
  config.model.layers = 3;
  config.model.heads = 2;
  config.model.kv_heads_sliding = 1;
  config.model.qk_dim = 16;
  config.model.v_dim = 16;
  config.model.window = 8;
  config.model.ffn = 48;
  config.model.experts = 4;
  config.model.expert_ffn = 16;
  config.data.seq_len = 24;
  config.data.rows_per_step = 12;
  config.compute.loss_chunk = 10;
  config.optimizer.lr = 1e-2;
  config.optimizer.warmup_steps = 2;
  config.optimizer.clip_norm = 1;
  config.validation.rows = 5;
  config.validation.every_steps = 1;
  config.run.steps = 1000;
  config.launch.collective_timeout_seconds = 20;
  return config;
}

TestCell::TestCell(const config::Config& config, int rank, const std::vector<placement::OptimizerFacts>& facts)
    : config_(config), placement_(placement::build(config, rank, facts)) {
  make_segments(shm::cell_layouts(config_, placement_));
  control_ = service::control_of(segment("control"));
  epoch_ = service::epoch_control(*this, 0);
  step_protocol::prepare(*control_.block, service::setting_of(config_));
  for (auto& first : first_) first = step_protocol::never;
  for (auto& word : segment("batches").span<step_protocol::Word>("words")) word = step_protocol::never;
  for (const placement::OwnedRange& range : placement_.owned) {
    for (std::int64_t i = 0; i < range.count; ++i) {
      master()[range.shard_offset + i] =
          model_spec::initial_value(placement_.parameters[range.parameter], config_.run.seed, range.first + i);
    }
  }
  publish_working_copy(0);
}

void TestCell::make_segments(const std::vector<shm::Layout>& layouts) {
  for (const shm::Layout& layout : layouts) {
    os::Fd fd(::memfd_create(layout.name.c_str(), MFD_CLOEXEC));
    GANYMEDE_CHECK(fd && ::ftruncate(fd.get(), static_cast<off_t>(layout.size)) == 0, "no memory for {}", layout.name);
    segments_[layout.name] = std::make_unique<shm::Segment>(shm::Segment::create(fd.get(), layout, 1));
  }
}

std::unique_ptr<msg::Client> TestCell::launcher_client() { fail("a test cell has no launcher"); }

void TestCell::at(std::uint64_t operation, std::uint64_t, const char*) {
  std::uint64_t none = step_protocol::never;
  bool of_a_plan = operation < first_.size();
  if (of_a_plan) first_[operation].compare_exchange_strong(none, epoch_.words->chunks_done.load());
  control_.services[0].operation = operation;
  ++control_.services[0].progress;
}

bool TestCell::wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
                    const std::function<bool()>& give_up, Deadline deadline, const char* what) {
  if (!ready(word.load())) ++waits_;
  while (true) {
    std::uint64_t seen = word.load();
    if (ready(seen)) return true;
    if (give_up && give_up()) return false;
    if (deadline.passed()) fail("{} did not come", what);
    os::wait_while_equal(word, seen, Deadline::after(std::chrono::milliseconds(5)));
  }
}

/// Counting text: each document goes up by a step of its own, so the next token can be learned.
void TestCell::fill_row(const std::string& prefix, std::size_t place, std::uint64_t row) {
  shm::Segment& batches = segment("batches");
  auto length = static_cast<std::size_t>(config_.data.seq_len);
  auto tokens = batches.span<std::int32_t>(prefix + "tokens").subspan(place * length, length);
  auto targets = batches.span<std::int32_t>(prefix + "targets").subspan(place * length, length);
  auto documents = batches.span<std::int32_t>(prefix + "documents").subspan(place * length, length);
  std::size_t cut = 5 + row % 13;
  for (std::size_t i = 0; i < length; ++i) {
    documents[i] = i < cut ? 0 : 1;
    std::uint64_t stride = 1 + (row + static_cast<std::uint64_t>(documents[i])) % 3;
    tokens[i] =
        static_cast<std::int32_t>((row * 7 + i * stride) % static_cast<std::uint64_t>(config_.model.vocabulary));
  }
  for (std::size_t i = 0; i < length; ++i) {
    bool last = i + 1 == length || documents[i + 1] != documents[i];
    targets[i] = last ? -1 : tokens[i + 1];
  }
}

void TestCell::serve(std::uint64_t step) {
  placement::RowRange rows = placement::rows_of(config_, rank());
  std::size_t slot = step % static_cast<std::size_t>(config_.data.slots);
  for (int r = 0; r < rows.count; ++r) {
    std::uint64_t row = (step - 1) * static_cast<std::uint64_t>(config_.data.rows_per_step) + rows.first + r;
    fill_row("", slot * rows.count + r, row);
  }
  auto all = static_cast<std::uint64_t>(config_.data.rows_per_step) * (config_.data.seq_len - 2);
  segment("batches").span<std::uint64_t>("header")[slot * 8] = step;
  segment("batches").span<std::uint64_t>("header")[slot * 8 + 1] = all;
  os::store_and_wake(segment("batches").span<step_protocol::Word>("words")[slot], step);
}

void TestCell::serve_validation() {
  int rows = shm::validation_rows(config_);
  for (int r = 0; r < rows; ++r) {
    std::uint64_t row = static_cast<std::uint64_t>(rank() * rows + r);
    fill_row("validation_", r, 1000000 + row);
    if (static_cast<int>(row) < config_.validation.rows) continue;
    auto length = static_cast<std::size_t>(config_.data.seq_len);
    auto targets = segment("batches").span<std::int32_t>("validation_targets").subspan(r * length, length);
    std::fill(targets.begin(), targets.end(), -1);  // padding of the last rank
  }
  segment("batches").span<step_protocol::Word>("validation_words")[0] = 0;
}

void TestCell::publish_working_copy(std::uint64_t step) {
  wire::WorkingForm form = wire::working_form(config_, placement_);
  for (std::size_t b = 0; b < form.buckets.size(); ++b) {
    const placement::Bucket& bucket = placement_.buckets[b];
    std::byte* to = segment("working").span<std::byte>("values").data() + form.offset[b];
    auto values = master().subspan(static_cast<std::size_t>(bucket.shard_offset),
                                   static_cast<std::size_t>(bucket.shard_elements()));
    if (form.buckets[b].wire() == config::ParameterWire::fp32) {
      std::memcpy(to, values.data(), values.size_bytes());
    } else if (form.buckets[b].wire() == config::ParameterWire::bf16) {
      wire::encode_bf16(values, reinterpret_cast<std::uint16_t*>(to));
    } else {
      form.buckets[b].encode(bucket.shard_begin(), bucket.shard_begin() + bucket.shard_elements(), values.data(), to);
    }
  }
  for (auto& word : control_.working_copy_ready) os::store_and_wake(word, step);
}

void TestCell::unpublish(std::uint64_t step) {
  epoch_.words->chunks_done = (step - 1) * placement_.chunks.size();
  for (auto& word : control_.working_copy_ready) word = step - 1;
  for (auto& first : first_) first = step_protocol::never;
  waits_ = 0;
}

void TestCell::publish_chunk(std::uint64_t step) {
  std::uint64_t chunk = epoch_.words->chunks_done - (step - 1) * placement_.chunks.size();
  os::store_and_wake(epoch_.words->chunks_done, epoch_.words->chunks_done + 1);
  int bucket = placement_.chunks[chunk].bucket;
  bool last = chunk + 1 == placement_.chunks.size() || placement_.chunks[chunk + 1].bucket != bucket;
  if (last) os::store_and_wake(control_.working_copy_ready[bucket], step);
}

void TestCell::update(std::uint64_t step) {
  const step_protocol::DecisionRecord& record = control_.block->record_of(step);
  shm::Segment& state = segment(shm::state_name(0));
  auto m = state.span<float>("slot.0"), v = state.span<float>("slot.1");
  constexpr double beta1 = 0.9, beta2 = 0.95;
  double c1 = 1 - std::pow(beta1, static_cast<double>(record.updates));
  double c2 = 1 - std::pow(beta2, static_cast<double>(record.updates));
  for (const placement::OwnedRange& range : placement_.owned) {
    if (record.apply == 0) break;
    for (std::int64_t i = range.shard_offset; i < range.shard_offset + range.count; ++i) {
      double g = static_cast<double>(gradients()[i]) * record.clip_factor;
      m[i] = static_cast<float>(beta1 * m[i] + (1 - beta1) * g);
      v[i] = static_cast<float>(beta2 * v[i] + (1 - beta2) * g * g);
      master()[i] -= static_cast<float>(record.lr * (m[i] / c1) / (std::sqrt(v[i] / c2) + 1e-8));
    }
  }
  epoch_.words->chunks_done = step * placement_.chunks.size();
  publish_working_copy(step);
}

}  // namespace ganymede::worker
