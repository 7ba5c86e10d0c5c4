#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/service/run_directory.h"
#include "services/checkpoint/key.h"

namespace ganymede::checkpoint {

/// What a part holds: the value under `~part`, written together with the values it lists. A part without it is not
/// complete and does not count.
struct PartRecord {
  struct Value {
    Key key;
    std::int64_t count = 0;  // elements
    std::string hash;        // of the data, 32 digits
  };
  std::uint64_t step = 0;
  int rank = 0;
  std::uint64_t job = 0;                                    // of the launch that wrote it
  std::vector<std::string> slots;                           // "master", then the optimizer's, in plugin order
  std::vector<service::ManifestOptimizer> optimizers = {};  // that updated the state; none: not known
  std::string config = {};                                  // effective, with the setting in force
  /// By parameter: for each slot of its optimizer how many updates the parameter had seen when the slot was zero
  /// (EpochState::began). A parameter that is not there: none.
  std::map<std::string, std::vector<std::uint64_t>> began = {};
  /// By parameter: those of its slots that have one value a row. A parameter that is not there: none. Keys and counts
  /// of their values are in rows.
  std::map<std::string, std::vector<std::string>> row_slots = {};
  std::map<std::string, std::vector<std::int64_t>> shapes;  // of the whole parameters that it holds values of
  std::vector<Value> values;                                // in the order in which they were written

  std::uint64_t bytes() const;  // of all data
  /// Hash over keys, counts and hashes of all values: the part's entry in the manifest.
  std::string hash() const;
};

std::string to_json(const PartRecord& record);
/// Throws Error with the reason when the text is no part record.
PartRecord part_record_from_json(const std::string& text);

}  // namespace ganymede::checkpoint
