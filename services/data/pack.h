#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "services/data/meta.h"

namespace ganymede::data {

struct PackOptions {
  std::vector<std::string> sources;
  std::string to;
  std::string tokenizer = "bytes";  // "bytes", "train:VOCABULARY", or a SentencePiece model file
  int seq_len = 256;
  std::vector<std::string> extensions;
  std::uint64_t max_bytes = 0;  // of text; 0: all
  double validation_fraction = 0.02;
  std::uint64_t seed = 1;
  std::uint64_t rows_per_step = 0;  // 0: not known; else refused when there are fewer training rows
  bool wait_for_other = false;      // whether to wait for another process that packs the same dataset
};

/// What a run configuration asks for.
PackOptions pack_options(const config::Config& config);

/// Packs the sources into a dataset folder, which appears whole or not at all, and returns its description.
/// Throws Error(usage) when the folder is taken, a source is missing or nothing can be packed; Error when it cannot be
/// written; Error(can_go_on) when a signal came.
Meta pack(const PackOptions& options);

}  // namespace ganymede::data
