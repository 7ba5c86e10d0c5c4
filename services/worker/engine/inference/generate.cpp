#include "services/worker/engine/inference/generate.h"

#include <cstdio>
#include <sstream>

#include "common/base/error.h"
#include "services/worker/engine/inference/sibling.h"

namespace ganymede::worker {
namespace {

std::vector<std::int64_t> encode(const std::string& dataset, const std::string& text) {
  std::istringstream ids(run_sibling({"ganymede-data", "encode", dataset, "--text", text}));
  std::vector<std::int64_t> tokens;
  for (std::int64_t id; ids >> id;) tokens.push_back(id);
  return tokens;
}

}  // namespace

void continue_tokens(CheckpointModel& model, std::vector<std::int64_t> tokens, std::int64_t count,
                     const Sampling& sampling, const std::function<void(std::int64_t)>& drawn) {
  auto longest = static_cast<std::size_t>(model.config().data.seq_len);
  for (std::int64_t i = 0; i < count; ++i) {
    if (tokens.size() > longest) tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(longest));
    at::Tensor logits = model.next_logits(tokens);
    std::span<const float> values(logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
    tokens.push_back(sample(values, sampling, static_cast<std::uint64_t>(i)));
    drawn(tokens.back());
  }
}

void generate(const GenerateOptions& options) {
  if (options.prompt.empty()) fail_usage("--prompt is empty: give at least one character to go on from.");
  CheckpointModel model(options.folder, options.step);
  const std::string& dataset = options.dataset.empty() ? model.config().data.path : options.dataset;
  std::vector<std::int64_t> tokens = encode(dataset, options.prompt);
  for (std::int64_t token : tokens) {
    if (token < 0 || token >= model.config().model.vocabulary) {
      fail_usage("Token {} of the prompt is outside the model's vocabulary of {}: {} has another tokenizer.", token,
                 model.config().model.vocabulary, dataset);
    }
  }
  if (tokens.empty()) fail_usage("--prompt has no token.");
  {
    Sibling decoder({"ganymede-data", "decode", dataset});
    for (std::int64_t token : tokens) decoder.write(fmt::format("{}\n", token));
    continue_tokens(model, tokens, options.tokens, options.sampling,
                    [&](std::int64_t token) { decoder.write(fmt::format("{}\n", token)); });
  }
  std::fputs("\n", stdout);
}

}  // namespace ganymede::worker
