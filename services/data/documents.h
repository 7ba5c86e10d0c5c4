#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "services/data/meta.h"
#include "services/data/sources.h"

namespace ganymede::data {

struct ReadOptions {
  std::uint64_t max_bytes = 0;  // of text in all; reading ends before the document that would go beyond; 0: all
  bool utf8_only = false;       // skip documents that are not UTF-8
};

/// A document and how far into the sources it lies (bytes of all files up to it, for progress).
using TakeDocument = std::function<void(std::string&& text, std::uint64_t bytes_read)>;

/// Hands every document of the files to `take`, in order: a text file is one document, a .jsonl file has one in
/// each line ({"text": …}). What is left out is counted by its reason. A file is held in memory whole, but for
/// .jsonl, of which one line is.
Skipped read_documents(const SourceFiles& sources, const ReadOptions& options, const TakeDocument& take);

}  // namespace ganymede::data
