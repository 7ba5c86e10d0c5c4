#include "services/checkpoint/rocks.h"

#include <rocksdb/env.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/table.h>

#include <cstdarg>
#include <memory>

#include "common/base/error.h"

namespace ganymede::checkpoint {
namespace {

/// What RocksDB would note for itself, errors come as a Status anyway: it ends the process when it cannot write its log
/// while it opens a database, and a full disk must not do that.
class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

}  // namespace

rocksdb::Options database_options() {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  table.checksum = rocksdb::kXXH3;
  table.format_version = 5;
  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.create_if_missing = true;
  options.max_open_files = 64;
  options.max_file_opening_threads = 1;  // RocksDB ends the process when it cannot start one of more
  options.max_background_jobs = 2;
  options.disable_auto_compactions = true;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = 1 << 20;
  options.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  options.info_log = std::make_shared<NoLog>();
  options.max_manifest_file_size = 1 << 20;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  return options;
}

std::string reason(const rocksdb::Status& status) {
  if (status.IsNoSpace()) return "there is no space left on the disk";
  return status.ToString();
}

void check(const rocksdb::Status& status, const std::string& doing) {
  if (!status.ok()) fail("{}: {}.", doing, reason(status));
}

}  // namespace ganymede::checkpoint
