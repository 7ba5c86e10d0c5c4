#include "services/worker/engine/inference/generate.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
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

std::string decode(const std::string& dataset, const std::vector<std::int64_t>& tokens) {
  return run_sibling({"ganymede-data", "decode", dataset}, fmt::format("{}", fmt::join(tokens, "\n")));
}

void print_json(CheckpointModel& model, const GenerateOptions& options, const std::string& dataset,
                const std::vector<std::int64_t>& prompt) {
  std::vector<std::int64_t> drawn, all = prompt;
  continue_tokens(model, prompt, options.tokens, options.sampling, [&](std::int64_t token) { drawn.push_back(token); });
  all.insert(all.end(), drawn.begin(), drawn.end());
  // What a token stands for may depend on whether it is the first, so both are decoded from the beginning.
  std::string begin = decode(dataset, prompt), whole = decode(dataset, all);
  nlohmann::ordered_json object = {{"step", model.step()},
                                   {"prompt", options.prompt},
                                   {"continuation", whole.substr(std::min(begin.size(), whole.size()))},
                                   {"prompt_tokens", prompt},
                                   {"tokens", drawn}};
  fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
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
  if (options.json) return print_json(model, options, dataset, tokens);
  // Whatever ends this, the text has its line end before anything else is said.
  Sibling decoder({"ganymede-data", "decode", dataset, "--line", "--dim", std::to_string(tokens.size())});
  for (std::int64_t token : tokens) decoder.write(fmt::format("{}\n", token));
  continue_tokens(model, tokens, options.tokens, options.sampling,
                  [&](std::int64_t token) { decoder.write(fmt::format("{}\n", token)); });
  decoder.finish();
}

}  // namespace ganymede::worker
