#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "services/worker/model/ends.h"
#include "services/worker/model/layer.h"

namespace ganymede::worker {

/// The model of one checkpoint, whole in this process, in fp32.
class CheckpointModel {
 public:
  /// `folder`: a run directory or a checkpoint folder; `step`: the newest if empty. Throws Error.
  CheckpointModel(const std::string& folder, std::optional<std::uint64_t> step);

  /// From values that a caller has in memory: `fill(parameter, to)` writes the parameter's elements.
  using Fill = std::function<void(const model_spec::ParameterSpec&, float* to)>;
  CheckpointModel(const config::Config& config, const Fill& fill);

  const config::Config& config() const { return config_; }
  std::uint64_t step() const { return step_; }

  /// Hidden states [T, H] after the last layer. T is at most data.seq_len.
  at::Tensor hidden(const model::Row& row);
  /// Loss sum of a row over its targets.
  double loss(const model::Row& row);
  /// Logits fp32 [V] of the token after `tokens` (at most data.seq_len of them, at least one).
  at::Tensor next_logits(const std::vector<std::int64_t>& tokens);

 private:
  void bind(const Fill& fill);
  at::Tensor view(const std::string& name) const;

  config::Config config_;
  std::uint64_t step_ = 0;
  placement::Placement placement_;
  model_spec::ModelSpec spec_;
  std::vector<at::Tensor> buckets_;  // flat arrays as placement lays them out
  std::vector<model::LayerTensors> layers_;
  std::optional<model::RotaryTables> rotary_;
};

}  // namespace ganymede::worker
