#include "services/checkpoint/verify.h"

#include "common/base/hash.h"
#include "services/checkpoint/value.h"

namespace ganymede::checkpoint {

Verification verify(CheckpointView& view, const Progress& progress) {
  Verification result;
  result.step = view.manifest().step;
  result.parts = static_cast<int>(view.manifest().parts.size());
  result.damage = view.damage();
  result.bytes = view.bytes();
  StreamingHash hash;
  std::uint64_t done = 0;
  rocksdb::PinnableSlice bytes;
  for (const CheckpointView::Entry& entry : view.entries()) {
    std::string damage = view.read(entry, bytes);
    if (!damage.empty()) {
      result.damage.push_back({place(entry), damage});
    } else if (entry.key.slot == master_slot) {
      if (entry.key.first == 0) {
        const std::string& name = entry.key.parameter;
        hash.add(std::as_bytes(std::span(name.c_str(), name.size() + 1)));
      }
      hash.add(data_of({bytes.data(), bytes.size()}));
    }
    ++result.values;
    done += static_cast<std::uint64_t>(entry.count) * sizeof(float);
    progress(done, result.bytes);
  }
  if (result.damage.empty()) result.hash = hash.value().hex();
  return result;
}

}  // namespace ganymede::checkpoint
