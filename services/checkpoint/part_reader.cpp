#include "services/checkpoint/part_reader.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "common/base/error.h"
#include "services/checkpoint/rocks.h"
#include "services/checkpoint/store_folder.h"
#include "services/checkpoint/value.h"

namespace ganymede::checkpoint {
namespace {

// A service that opens its database at the same moment replaces files under us: look again.
constexpr int open_tries = 3;
constexpr auto between_tries = std::chrono::milliseconds(100);

rocksdb::Options reading_options() {
  rocksdb::Options options = database_options();
  options.create_if_missing = false;
  return options;
}

}  // namespace

PartReader::PartReader(const std::string& checkpoints, int rank, std::uint64_t step) {
  std::string folder = part_folder(checkpoints, rank);
  if (!std::filesystem::exists(folder + "/CURRENT")) fail("there is no database in {}", folder);
  if (std::string foreign = why_not_opened(folder); !foreign.empty()) fail("{}", foreign);
  for (int attempt = 1;; ++attempt) {
    try {
      open(folder, step);
      return;
    } catch (const Error&) {
      close();
      if (attempt == open_tries) throw;
    }
    std::this_thread::sleep_for(between_tries);
  }
}

PartReader::~PartReader() { close(); }

void PartReader::open(const std::string& folder, std::uint64_t step) {
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors = {{rocksdb::kDefaultColumnFamilyName, reading_options()},
                                                              {family_name(step), reading_options()}};
  rocksdb::DB* database = nullptr;
  rocksdb::Status status = rocksdb::DB::OpenForReadOnly(reading_options(), folder, descriptors, &families_, &database);
  if (!status.ok()) fail("it cannot be opened: {}", reason(status));
  database_.reset(database);

  rocksdb::PinnableSlice bytes;
  status = database_->Get(rocksdb::ReadOptions(), families_.back(), part_key, &bytes);
  if (status.IsNotFound()) fail("it was not written to its end");
  if (!status.ok()) fail("its list of values cannot be read: {}", reason(status));
  std::string_view view(bytes.data(), bytes.size());
  std::string damage = why_damaged(view, ValueType::text, -1);
  if (!damage.empty()) fail("its list of values is damaged: {}", damage);
  auto text = data_of(view);
  record_ = part_record_from_json(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
}

void PartReader::close() {
  if (!database_) return;
  for (rocksdb::ColumnFamilyHandle* handle : families_) {
    database_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  families_.clear();
  database_.reset();
}

std::string PartReader::read(const Key& key, std::int64_t count, rocksdb::PinnableSlice& bytes) const {
  bytes.Reset();
  rocksdb::Status status = database_->Get(rocksdb::ReadOptions(), families_.back(), encode(key), &bytes);
  if (!status.ok()) return reason(status);
  return why_damaged({bytes.data(), bytes.size()}, ValueType::f32, count);
}

std::vector<std::uint64_t> steps_in_part(const std::string& checkpoints, int rank) {
  std::vector<std::string> names;
  std::vector<std::uint64_t> steps;
  std::string folder = part_folder(checkpoints, rank);
  if (!why_not_opened(folder).empty()) return steps;
  if (!rocksdb::DB::ListColumnFamilies(reading_options(), folder, &names).ok()) return steps;
  for (const std::string& name : names) {
    if (auto step = family_step(name)) steps.push_back(*step);
  }
  return steps;
}

}  // namespace ganymede::checkpoint
