#include "services/checkpoint/paced_files.h"

#include <rocksdb/file_system.h>

#include <algorithm>
#include <string>
#include <utility>

namespace ganymede::checkpoint {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class PacedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  PacedFile(std::unique_ptr<FSWritableFile> file, const Wrote& wrote)
      : FSWritableFileOwnerWrapper(std::move(file)), wrote_(wrote) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* context) override {
    for (Slice rest = data; !rest.empty();) {
      std::size_t count = std::min(rest.size(), paced_bytes - begun_);
      IOStatus status = FSWritableFileOwnerWrapper::Append(Slice(rest.data(), count), options, context);
      if (!status.ok()) return status;
      rest.remove_prefix(count);
      written_ += count;
      begun_ += count;
      if (begun_ < paced_bytes) continue;
      status = RangeSync(written_ - begun_, begun_, options, context);
      if (!status.ok()) return status;
      begun_ = 0;
      wrote_();
    }
    return IOStatus::OK();
  }
  /// The checksums that come with the data are of the whole of it.
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    return counted(FSWritableFileOwnerWrapper::Sync(options, context));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return counted(FSWritableFileOwnerWrapper::Fsync(options, context));
  }

 private:
  IOStatus counted(IOStatus status) {
    wrote_();
    return status;
  }

  const Wrote& wrote_;
  std::uint64_t written_ = 0;
  std::size_t begun_ = 0;  // bytes of the piece that is being filled
};

class PacedFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit PacedFileSystem(Wrote wrote) : FileSystemWrapper(rocksdb::FileSystem::Default()), wrote_(std::move(wrote)) {}

  const char* Name() const override { return "PacedFileSystem"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options, std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* context) override {
    FileOptions strict = options;
    strict.strict_bytes_per_sync = true;  // RangeSync waits for the piece before
    std::unique_ptr<FSWritableFile> file;
    IOStatus status = target()->NewWritableFile(name, strict, &file, context);
    if (status.ok()) *result = std::make_unique<PacedFile>(std::move(file), wrote_);
    return status;
  }

 private:
  Wrote wrote_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> paced_environment(Wrote wrote) {
  return rocksdb::NewCompositeEnv(std::make_shared<PacedFileSystem>(std::move(wrote)));
}

}  // namespace ganymede::checkpoint
