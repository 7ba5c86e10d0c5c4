#include "services/checkpoint/part_store.h"

#include <algorithm>
#include <filesystem>

#include "common/base/error.h"
#include "common/os/files.h"
#include "services/checkpoint/rocks.h"
#include "services/checkpoint/store_folder.h"

namespace ganymede::checkpoint {
namespace {

constexpr std::string_view incoming_prefix = "incoming.";

std::vector<std::string> family_names(const std::string& folder) {
  if (!std::filesystem::exists(folder + "/CURRENT")) return {rocksdb::kDefaultColumnFamilyName};  // a new database
  std::vector<std::string> names;
  check(rocksdb::DB::ListColumnFamilies(database_options(), folder, &names),
        fmt::format("The checkpoint database {} cannot be read", folder));
  return names;
}

}  // namespace

PartStore::PartStore(std::string folder, Reached reached) : folder_(std::move(folder)), reached_(std::move(reached)) {
  os::make_private_folder(folder_);
  remove_incoming();
  if (std::string foreign = why_not_opened(folder_); !foreign.empty()) fail("{}.", foreign);
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : family_names(folder_)) descriptors.emplace_back(name, database_options());
  rocksdb::DB* database = nullptr;
  check_opened(rocksdb::DB::Open(database_options(), folder_, descriptors, &families_, &database), folder_);
  database_.reset(database);
}

PartStore::~PartStore() {
  for (rocksdb::ColumnFamilyHandle* handle : families_)
    database_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  database_->Close().PermitUncheckedError();
}

void PartStore::remove_incoming() const {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (entry.path().filename().string().starts_with(incoming_prefix)) left.push_back(entry.path());
  }
  for (const auto& path : left) std::filesystem::remove_all(path, error);
}

std::string PartStore::incoming_folder(std::uint64_t step) const {
  return fmt::format("{}/{}{}", folder_, incoming_prefix, step);
}

std::vector<std::uint64_t> PartStore::steps() const {
  std::vector<std::uint64_t> steps;
  for (rocksdb::ColumnFamilyHandle* handle : families_) {
    if (auto step = family_step(handle->GetName())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

rocksdb::ColumnFamilyHandle* PartStore::family(std::uint64_t step) const {
  std::string name = family_name(step);
  auto found =
      std::find_if(families_.begin(), families_.end(), [&](auto* handle) { return handle->GetName() == name; });
  return found == families_.end() ? nullptr : *found;
}

std::optional<PartRecord> PartStore::record(std::uint64_t step) const {
  rocksdb::ColumnFamilyHandle* handle = family(step);
  rocksdb::PinnableSlice bytes;
  if (handle == nullptr || !database_->Get(rocksdb::ReadOptions(), handle, part_key, &bytes).ok()) return {};
  std::string_view view(bytes.data(), bytes.size());
  if (!why_damaged(view, ValueType::text, -1).empty()) return {};
  auto text = data_of(view);
  try {
    return part_record_from_json(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  } catch (const Error&) {
    return {};
  }
}

void PartStore::ingest(std::uint64_t step, const PartFiles& files) {
  reached_("files written");
  rocksdb::ColumnFamilyHandle* handle = family(step);
  if (handle == nullptr) {
    check(database_->CreateColumnFamily(database_options(), family_name(step), &handle),
          fmt::format("The checkpoint of step {} cannot be begun", step));
    families_.push_back(handle);
  }
  reached_("family made");
  rocksdb::IngestExternalFileArg argument;
  argument.column_family = handle;
  argument.external_files = files.paths;
  argument.files_checksums = files.checksums;
  argument.files_checksum_func_names = files.checksum_functions;
  argument.options.move_files = true;
  argument.options.write_global_seqno = false;  // files stay as they were when their checksum was taken
  argument.options.verify_file_checksum = false;
  check(database_->IngestExternalFiles({argument}), fmt::format("The checkpoint of step {} cannot be taken in", step));
  reached_("part durable");
}

void PartStore::drop(std::uint64_t step) {
  rocksdb::ColumnFamilyHandle* handle = family(step);
  if (handle == nullptr) return;
  std::string doing = fmt::format("The checkpoint of step {} cannot be removed", step);
  check(database_->DropColumnFamily(handle), doing);
  std::erase(families_, handle);
  check(database_->DestroyColumnFamilyHandle(handle), doing);
  reached_("part dropped");
}

}  // namespace ganymede::checkpoint
