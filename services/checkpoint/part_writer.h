#pragma once

#include <rocksdb/sst_file_writer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "services/checkpoint/paced_files.h"
#include "services/checkpoint/part_record.h"
#include "services/checkpoint/value.h"

namespace ganymede::checkpoint {

/// Files that are to be taken into a database, with their checksums.
struct PartFiles {
  std::vector<std::string> paths, checksums, checksum_functions;
};

/// Writes the values of one part into SST files of a folder of its own: one file a slot at a time, a new one whenever
/// a key would not ascend. The folder is removed with the writer. Not thread-safe.
class PartWriter {
 public:
  /// Makes `folder` anew. `record` holds step, rank, job and slots. `wrote` hears of every piece that goes to disk
  /// during add and finish.
  PartWriter(std::string folder, PartRecord record, Wrote wrote);
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  /// The same elements of one parameter for each of `slots`, which are among record.slots; seals the values. Throws
  /// Error (a full disk).
  void add(const std::string& parameter, const std::vector<std::int64_t>& shape, std::int64_t first,
           const std::vector<std::string>& slots, std::vector<ValueBuffer>& values);

  /// Closes and syncs all files; the last one holds the part record.
  PartFiles finish();

  const PartRecord& record() const { return record_; }

 private:
  struct SlotFile {
    std::unique_ptr<rocksdb::SstFileWriter> writer;
    std::string last_key;
  };
  void put(SlotFile& file, const std::string& key, std::string_view value);
  void close(SlotFile& file);

  std::string folder_;
  PartRecord record_;
  std::unique_ptr<rocksdb::Env> environment_;  // outlives the files
  std::vector<SlotFile> slots_;
  PartFiles files_;
  int opened_ = 0;
};

}  // namespace ganymede::checkpoint
