#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "services/worker/engine/inference/checkpoint_model.h"
#include "services/worker/engine/inference/sampling.h"

namespace ganymede::worker {

struct GenerateOptions {
  std::string folder;
  std::optional<std::uint64_t> step;
  std::string prompt;
  std::string dataset;  // whose tokenizer is used; empty: the one that the run learned from
  std::int64_t tokens = 200;
  Sampling sampling;
  bool json = false;
};

/// Prints the prompt, dim on a terminal, and its continuation to stdout as it comes; or one JSON object at the end:
/// {"step", "prompt", "continuation", "prompt_tokens", "tokens"}, the last two as lists of ids. Throws Error.
void generate(const GenerateOptions& options);

/// Draws `count` tokens after `tokens`, seeing at most the last data.seq_len; calls `drawn` for each.
void continue_tokens(CheckpointModel& model, std::vector<std::int64_t> tokens, std::int64_t count,
                     const Sampling& sampling, const std::function<void(std::int64_t)>& drawn);

}  // namespace ganymede::worker
