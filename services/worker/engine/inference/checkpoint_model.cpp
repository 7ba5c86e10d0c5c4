#include "services/worker/engine/inference/checkpoint_model.h"

#include <algorithm>
#include <filesystem>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/files.h"
#include "common/service/run_directory.h"
#include "services/worker/engine/inference/safetensors.h"
#include "services/worker/engine/inference/sibling.h"

namespace ganymede::worker {
namespace {

/// A private folder that is removed with all that lies in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "ganymede.XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      fail("No folder can be made in {}: set TMPDIR.", std::filesystem::temp_directory_path().string());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

service::Manifest choose(const std::string& folder, std::optional<std::uint64_t> step) {
  service::Manifests manifests = service::find_manifests(folder);
  if (!step) {
    for (const service::DamagedManifest& one : manifests.passed_over())
      log::warn("the checkpoint of step {} is passed over: {}", one.step, one.reason);
  }
  return service::choose_manifest(manifests, folder, step.value_or(0));
}

}  // namespace

CheckpointModel::CheckpointModel(const std::string& folder, std::optional<std::uint64_t> step) {
  std::string checkpoints = service::find_checkpoints(folder);
  service::Manifest manifest = choose(checkpoints, step);
  step_ = manifest.step;
  TemporaryFolder temporary;
  os::write_file_atomically(temporary.file("config.toml"), manifest.config);
  config_ = config::load(temporary.file("config.toml"), {});
  std::string weights = temporary.file("weights.safetensors");
  run_sibling({"ganymede-checkpoint", "dump", checkpoints, "--step", std::to_string(step_), "--to", weights});
  Safetensors tensors(weights);
  bind([&](const model_spec::ParameterSpec& parameter, float* to) {
    tensors.copy(parameter.name, parameter.shape, to);
  });
}

CheckpointModel::CheckpointModel(const config::Config& config, const Fill& fill) : config_(config) { bind(fill); }

void CheckpointModel::bind(const Fill& fill) {
  config_.parallel = {};
  placement_ = placement::build(config_, 0);
  spec_ = model_spec::build(config_.model);
  for (const placement::Bucket& bucket : placement_.buckets) {
    at::Tensor flat = at::zeros({bucket.elements}, at::kFloat);
    for (const placement::PlacedParameter& placed : bucket.parameters) {
      fill(placement_.parameters[placed.parameter], flat.data_ptr<float>() + placed.offset);
    }
    buckets_.push_back(std::move(flat));
  }
  for (int layer = 0; layer < config_.model.layers; ++layer) {
    layers_.push_back(model::bind_layer(spec_, layer, 0, placement_.local_experts,
                                        [this](const std::string& name) { return view(name); }));
  }
  rotary_.emplace(spec_, config_.data.seq_len);
}

at::Tensor CheckpointModel::view(const std::string& name) const {
  for (std::size_t b = 0; b < placement_.buckets.size(); ++b) {
    for (const placement::PlacedParameter& placed : placement_.buckets[b].parameters) {
      const model_spec::ParameterSpec& parameter = placement_.parameters[placed.parameter];
      if (parameter.name != name) continue;
      return at::from_blob(buckets_[b].data_ptr<float>() + placed.offset, parameter.shape, at::kFloat);
    }
  }
  return {};
}

at::Tensor CheckpointModel::hidden(const model::Row& row) {
  at::Tensor state = model::embed(view("model.embed_tokens.weight"), row);
  for (int layer = 0; layer < config_.model.layers; ++layer) {
    model::LayerContext context{&spec_, &*rotary_, layer, 0, placement_.local_experts};
    state = model::forward_layer(context, layers_[layer], row, state, nullptr, nullptr);
  }
  return state;
}

double CheckpointModel::loss(const model::Row& row) {
  return model::head_loss(spec_, {view("model.norm.weight"), view("lm_head.weight")}, row, hidden(row),
                          config_.compute.loss_chunk);
}

at::Tensor CheckpointModel::next_logits(const std::vector<std::int64_t>& tokens) {
  auto length = static_cast<std::int64_t>(tokens.size());
  model::Row row;
  row.tokens = at::empty({length}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), row.tokens.data_ptr<std::int64_t>());
  row.targets = at::full({length}, -1, at::kLong);
  row.document_begin = {0, length};
  at::Tensor last = hidden(row).narrow(0, length - 1, 1);
  return model::head_logits(spec_, {view("model.norm.weight"), view("lm_head.weight")}, last).reshape({-1});
}

}  // namespace ganymede::worker
