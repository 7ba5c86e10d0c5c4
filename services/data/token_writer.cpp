#include "services/data/token_writer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/threads.h"
#include "services/data/dataset_format.h"

namespace ganymede::data {
namespace {

constexpr std::uint64_t batch_bytes = 4u << 20;  // text that is encoded at once
constexpr unsigned most_threads = 16;

/// ids[i] = tokens of texts[i], on as many threads as there are cores.
std::vector<std::vector<std::uint32_t>> encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::vector<std::vector<std::uint32_t>> ids(texts.size());
  std::atomic<std::size_t> next{0};
  std::exception_ptr fault;
  std::mutex fault_mutex;
  auto work = [&] {
    try {
      for (std::size_t i = next++; i < texts.size(); i = next++) tokenizer.encode(texts[i], ids[i]);
    } catch (...) {
      std::lock_guard lock(fault_mutex);
      fault = std::current_exception();
    }
  };
  // Bytes are copied faster than threads are started.
  unsigned cores = tokenizer.identity().kind == "bytes" ? 1 : std::thread::hardware_concurrency();
  unsigned members = std::min({cores, most_threads, static_cast<unsigned>(texts.size())});
  auto threads = start_threads(
      std::max(static_cast<int>(members) - 1, 0), [&](int) { work(); }, [&] { next = texts.size(); });
  work();
  for (std::thread& thread : threads) thread.join();
  if (fault) std::rethrow_exception(fault);
  return ids;
}

}  // namespace

bool held_out(std::string_view text, double validation_fraction) {
  return static_cast<double>(hash64(text) >> 11) * 0x1p-53 < validation_fraction;
}

TokenWriter::TokenWriter(const std::string& path, const Tokenizer& tokenizer, double validation_fraction)
    : tokenizer_(tokenizer),
      validation_fraction_(validation_fraction),
      width_(tokenizer.identity().vocabulary <= 1 << 16 ? 2 : 4),
      file_(path, tokens_name, true) {}

void TokenWriter::add(std::string&& text) {
  waiting_bytes_ += text.size();
  waiting_.push_back(std::move(text));
  if (waiting_bytes_ >= batch_bytes) encode_waiting();
}

void TokenWriter::encode_waiting() {
  auto ids = encode_all(tokenizer_, waiting_);
  for (std::size_t i = 0; i < ids.size(); ++i) write(waiting_[i], ids[i]);
  waiting_.clear();
  waiting_bytes_ = 0;
}

void TokenWriter::write(const std::string& text, std::vector<std::uint32_t>& ids) {
  int end = tokenizer_.identity().end_of_document;
  if (end >= 0) ids.push_back(static_cast<std::uint32_t>(end));
  if (ids.size() < 2) {
    ++documents_.empty;
    return;
  }
  if (documents_.count() >= UINT32_MAX) fail_usage("A dataset holds at most {} documents: pack in parts.", UINT32_MAX);
  if (width_ == 2) {
    std::vector<std::uint16_t> narrow(ids.begin(), ids.end());
    file_.write_all(std::span<const std::uint16_t>(narrow));
  } else {
    file_.write_all(std::span<const std::uint32_t>(ids));
  }
  auto document = static_cast<std::uint32_t>(documents_.count());
  (held_out(text, validation_fraction_) ? documents_.validation : documents_.train).push_back(document);
  documents_.begin.push_back(documents_.tokens() + ids.size());
  documents_.text_bytes += text.size();
}

FileRecord TokenWriter::finish() {
  encode_waiting();
  FileHeader header{.magic = tokens_magic, .width = width_};
  header.counts[0] = documents_.tokens();
  return file_.finish(header);
}

}  // namespace ganymede::data
