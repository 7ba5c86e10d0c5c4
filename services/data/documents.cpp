#include "services/data/documents.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/error.h"
#include "common/os/files.h"
#include "services/data/utf8.h"

namespace ganymede::data {
namespace {

class Reading {
 public:
  Reading(const ReadOptions& options, const TakeDocument& take) : options_(options), take_(take) {}

  void text_file(const SourceFile& file) {
    std::string text;
    try {
      text = os::read_file(file.path);
    } catch (const Error&) {
      ++skipped.unreadable;
      return;
    }
    document(std::move(text), read_before_ + file.bytes);
    if (full) taken_up_to = read_before_;
  }

  void json_lines(const SourceFile& file) {
    std::ifstream in(file.path, std::ios::binary);
    if (!in) ++skipped.unreadable;
    std::string line;
    std::uint64_t position = read_before_;
    while (!full && std::getline(in, line)) {
      position += line.size() + 1;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;  // blank lines separate nothing
      if (auto text = text_of(line))
        document(std::move(*text), position);
      else
        ++skipped.bad_lines;
      if (full) taken_up_to = position - line.size() - 1;
    }
    if (in.bad()) ++skipped.unreadable;
  }

  void end_of_file(const SourceFile& file) { read_before_ += file.bytes; }

  Skipped skipped;
  bool full = false;              // max_bytes is reached
  std::uint64_t taken_up_to = 0;  // of the bytes of all files, where it was

 private:
  static std::optional<std::string> text_of(const std::string& line) {
    auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) return {};
    auto text = object.find("text");
    if (text == object.end() || !text->is_string()) return {};
    return text->get<std::string>();
  }

  void document(std::string&& text, std::uint64_t position) {
    if (text.empty()) {
      ++skipped.empty;
    } else if (text.find('\0') != std::string::npos) {
      ++skipped.binary;
    } else if (options_.utf8_only && !is_utf8(text)) {
      ++skipped.not_utf8;
    } else if (options_.max_bytes > 0 && taken_ + text.size() > options_.max_bytes) {
      full = true;
    } else {
      taken_ += text.size();
      take_(std::move(text), position);
    }
  }

  const ReadOptions& options_;
  const TakeDocument& take_;
  std::uint64_t taken_ = 0, read_before_ = 0;
};

}  // namespace

Skipped read_documents(const SourceFiles& sources, const ReadOptions& options, const TakeDocument& take) {
  Reading reading(options, take);
  reading.skipped.unreadable = sources.unreadable;
  for (const SourceFile& file : sources.files) {
    if (file.lines_of_json())
      reading.json_lines(file);
    else
      reading.text_file(file);
    if (reading.full) {
      reading.skipped.beyond_files = static_cast<std::uint64_t>(sources.files.data() + sources.files.size() - &file);
      reading.skipped.beyond_bytes = sources.bytes() - std::min(sources.bytes(), reading.taken_up_to);
      break;
    }
    reading.end_of_file(file);
  }
  return reading.skipped;
}

}  // namespace ganymede::data
