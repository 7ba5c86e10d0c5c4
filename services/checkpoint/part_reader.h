#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "services/checkpoint/part_record.h"

namespace ganymede::checkpoint {

/// Read-only view of one rank's part of one checkpoint. Works while the checkpoint service has the database open.
/// Not thread-safe.
class PartReader {
 public:
  /// Throws Error with the reason (without naming the part) when it cannot be opened or is not complete.
  PartReader(const std::string& checkpoints, int rank, std::uint64_t step);
  ~PartReader();
  PartReader(const PartReader&) = delete;
  PartReader& operator=(const PartReader&) = delete;

  const PartRecord& record() const { return record_; }
  /// Reads one value and checks it; returns why it is damaged, empty when it is intact. The bytes live until `bytes`
  /// is reset or filled again.
  std::string read(const Key& key, std::int64_t count, rocksdb::PinnableSlice& bytes) const;

 private:
  void open(const std::string& folder, std::uint64_t step);
  void close();

  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  PartRecord record_;
};

/// Steps that have a column family in a rank's database, complete or not; none when it cannot be read.
std::vector<std::uint64_t> steps_in_part(const std::string& checkpoints, int rank);

}  // namespace ganymede::checkpoint
