#include "launcher/keeper/segment_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/shm/keeper_protocol.h"

namespace ganymede::keeper {

int SegmentStore::create(const std::string& name, std::uint64_t bytes) {
  if (held_.contains(name)) fail("Segment \"{}\" exists already.", name);
  if (bytes == 0) fail("Segment \"{}\" would have no bytes.", name);
  if (held_.size() >= shm::most_held_segments) fail("The keeper holds {} segments and takes no more.", held_.size());
  if (bytes > most_bytes_ - bytes_) {
    fail("Segment \"{}\" of {} does not fit: {} of this machine's {} are taken by other segments.", name,
         human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(bytes_)),
         human_bytes(static_cast<double>(most_bytes_)));
  }
  os::Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail("Segment \"{}\" of {} cannot be made: {}.", name, human_bytes(static_cast<double>(bytes)),
         std::strerror(errno));
  }
  bytes_ += bytes;
  return held_.emplace(name, Held{std::move(fd), bytes}).first->second.fd.get();
}

int SegmentStore::get(const std::string& name) const {
  auto found = held_.find(name);
  if (found == held_.end()) fail("The keeper holds no segment \"{}\".", name);
  return found->second.fd.get();
}

void SegmentStore::drop(const std::string& name) {
  auto found = held_.find(name);
  if (found == held_.end()) fail("The keeper holds no segment \"{}\".", name);
  bytes_ -= found->second.bytes;
  held_.erase(found);
}

}  // namespace ganymede::keeper
