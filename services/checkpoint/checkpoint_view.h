#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/service/run_directory.h"
#include "services/checkpoint/part_reader.h"

namespace ganymede::checkpoint {

/// Something of a checkpoint that is not as it should be.
struct Damage {
  std::string where;   // "rank.1", or "rank.1/master/lm_head.weight/0000000000000000", or "master/lm_head.weight"
  std::string reason;  // for a person
};

/// Called as bytes were handled; for progress and heartbeats.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// A whole checkpoint as one set of values, however many ranks wrote it. Not thread-safe.
class CheckpointView {
 public:
  struct Entry {
    Key key;
    std::int64_t count = 0;  // elements, or rows
    int rank = 0;            // of the part that holds it
  };

  /// Reads the list of values of every part, and calls `opened` (may be empty) after each; what is wrong with them is
  /// in `damage`, nothing is thrown for it.
  CheckpointView(std::string folder, service::Manifest manifest, const std::function<void()>& opened = {});

  const std::string& folder() const { return folder_; }
  const service::Manifest& manifest() const { return manifest_; }
  const std::vector<Damage>& damage() const { return damage_; }
  /// All values, sorted by slot, parameter, first element.
  const std::vector<Entry>& entries() const { return entries_; }
  /// Those of one parameter in one slot, by element.
  std::span<const Entry> entries(const std::string& slot, const std::string& parameter) const;
  std::vector<std::string> slots() const;
  /// By parameter name.
  const std::map<std::string, std::vector<std::int64_t>>& shapes() const { return shapes_; }
  /// By parameter name, see PartRecord::began.
  const std::map<std::string, std::vector<std::uint64_t>>& began() const { return began_; }
  /// Whether the slot has one value a row of the parameter, see PartRecord::row_slots.
  bool per_row(const std::string& slot, const std::string& parameter) const;
  std::uint64_t bytes() const;

  /// Reads and checks one value; returns why it is damaged, empty when intact (see PartReader::read).
  std::string read(const Entry& entry, rocksdb::PinnableSlice& bytes);

 private:
  PartReader& part(int rank);
  void take(const PartRecord& record, int rank);
  void find_gaps();

  std::string folder_;
  service::Manifest manifest_;
  std::vector<Damage> damage_;
  std::vector<Entry> entries_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::map<std::string, std::vector<std::uint64_t>> began_;
  std::map<std::string, std::vector<std::string>> row_slots_;
  std::map<int, std::unique_ptr<PartReader>> open_;  // at most `most_open`
};

/// "rank.1/master/…", as in Damage::where.
std::string place(const CheckpointView::Entry& entry);

/// The checkpoint of `step` (0: the newest with an intact manifest) in a run directory or checkpoint folder. Throws
/// Error(usage) when there is none, naming those that there are.
CheckpointView open_checkpoint(const std::string& folder, std::uint64_t step, const std::function<void()>& opened = {});

}  // namespace ganymede::checkpoint
