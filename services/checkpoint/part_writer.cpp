#include "services/checkpoint/part_writer.h"

#include <algorithm>
#include <filesystem>

#include "common/base/error.h"
#include "common/os/files.h"
#include "services/checkpoint/rocks.h"

namespace ganymede::checkpoint {

PartWriter::PartWriter(std::string folder, PartRecord record, Wrote wrote)
    : folder_(std::move(folder)),
      record_(std::move(record)),
      environment_(paced_environment(std::move(wrote))),
      slots_(record_.slots.size()) {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
  os::make_private_folder(folder_);
}

PartWriter::~PartWriter() {
  slots_.clear();  // abandons files that are still open
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void PartWriter::add(const std::string& parameter, const std::vector<std::int64_t>& shape, std::int64_t first,
                     const std::vector<std::string>& slots, std::vector<ValueBuffer>& values) {
  GANYMEDE_CHECK(values.size() == slots.size(), "{} values for {} slots", values.size(), slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto slot = std::find(record_.slots.begin(), record_.slots.end(), slots[i]);
    GANYMEDE_CHECK(slot != record_.slots.end(), "the part has no slot {}", slots[i]);
    values[i].seal();
    Key key{slots[i], parameter, first};
    put(slots_[static_cast<std::size_t>(slot - record_.slots.begin())], encode(key), values[i].bytes());
    record_.values.push_back({key, static_cast<std::int64_t>(values[i].data().size()), values[i].hash().hex()});
  }
  record_.shapes[parameter] = shape;
}

void PartWriter::put(SlotFile& file, const std::string& key, std::string_view value) {
  if (file.writer && key <= file.last_key) close(file);
  if (!file.writer) {
    rocksdb::Options options = database_options();
    options.env = environment_.get();
    file.writer = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), options);
    check(file.writer->Open(fmt::format("{}/{}.sst", folder_, opened_++)),
          fmt::format("A file of the checkpoint of step {} cannot be made", record_.step));
  }
  check(file.writer->Put(key, rocksdb::Slice(value.data(), value.size())),
        fmt::format("The checkpoint of step {} cannot be written", record_.step));
  file.last_key = key;
}

void PartWriter::close(SlotFile& file) {
  rocksdb::ExternalSstFileInfo info;
  check(file.writer->Finish(&info), fmt::format("The checkpoint of step {} cannot be written", record_.step));
  files_.paths.push_back(info.file_path);
  files_.checksums.push_back(info.file_checksum);
  files_.checksum_functions.push_back(info.file_checksum_func_name);
  file.writer.reset();
}

PartFiles PartWriter::finish() {
  for (SlotFile& file : slots_) {
    if (file.writer) close(file);
  }
  SlotFile last;
  put(last, part_key, text_value(to_json(record_)));
  close(last);
  return files_;
}

}  // namespace ganymede::checkpoint
