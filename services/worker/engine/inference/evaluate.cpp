#include "services/worker/engine/inference/evaluate.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/base/error.h"
#include "services/worker/engine/inference/checkpoint_model.h"
#include "services/worker/engine/inference/sibling.h"

namespace ganymede::worker {
namespace {

using nlohmann::json;

std::vector<std::int64_t> numbers(const json& row, const char* key) {
  const json& list = row.at(key);
  return list.get<std::vector<std::int64_t>>();
}

at::Tensor tensor_of(const std::vector<std::int64_t>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

/// A row as `ganymede-data rows` prints it. Throws Error when the model cannot read it.
model::Row row_of(const std::string& line, const config::Config& config) {
  json parsed = json::parse(line, nullptr, false);
  if (!parsed.is_object()) fail("`ganymede-data rows` printed something that is not a row.");
  std::vector<std::int64_t> tokens = numbers(parsed, "tokens"), documents = numbers(parsed, "documents");
  if (tokens.size() > static_cast<std::size_t>(config.data.seq_len)) {
    fail_usage("The dataset's rows have {} tokens and the model was trained on {}: pack it with --seq-len {}.",
               tokens.size(), config.data.seq_len, config.data.seq_len);
  }
  for (std::int64_t token : tokens) {
    if (token < 0 || token >= config.model.vocabulary) {
      fail_usage(
          "Token {} of the dataset is outside the model's vocabulary of {}: it was packed with another tokenizer.",
          token, config.model.vocabulary);
    }
  }
  model::Row row;
  row.tokens = tensor_of(tokens);
  row.targets = tensor_of(numbers(parsed, "targets"));
  if (row.targets.numel() != row.tokens.numel() || documents.size() != tokens.size()) {
    fail("`ganymede-data rows` printed a row whose lists differ in length.");
  }
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (i == 0 || documents[i] != documents[i - 1]) row.document_begin.push_back(static_cast<std::int64_t>(i));
  }
  row.document_begin.push_back(static_cast<std::int64_t>(tokens.size()));
  return row;
}

}  // namespace

void evaluate(const EvaluateOptions& options) {
  CheckpointModel model(options.folder, options.step);
  std::istringstream lines(run_sibling(
      {"ganymede-data", "rows", options.dataset, "--split", options.split, "--count", std::to_string(options.rows)}));
  double loss = 0;
  std::int64_t rows = 0, tokens = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    model::Row row = row_of(line, model.config());
    loss += model.loss(row);
    tokens += row.targets.ge(0).sum().item<std::int64_t>();
  }
  if (tokens == 0) fail_usage("The {} part of {} has no token to predict.", options.split, options.dataset);
  double mean = loss / static_cast<double>(tokens);
  if (options.json) {
    json object = {{"step", model.step()},
                   {"loss", mean},
                   {"perplexity", std::exp(mean)},
                   {"rows", rows},
                   {"loss_tokens", tokens}};
    fmt::print("{}\n", object.dump());
  } else {
    fmt::print("step {}: loss {:.4f} nats a token, perplexity {:.2f}, over {} rows with {} tokens\n", model.step(),
               mean, std::exp(mean), rows, tokens);
  }
}

}  // namespace ganymede::worker
