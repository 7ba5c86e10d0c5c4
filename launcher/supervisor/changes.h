#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/service/run_directory.h"
#include "launcher/supervisor/cells.h"
#include "launcher/supervisor/epochs.h"
#include "launcher/supervisor/kept_changes.h"

namespace ganymede::launcher {

/// A change and how it is getting on.
struct ChangeState {
  struct Key {
    std::string key;
    double was = 0, now = 0;
  };
  std::uint64_t number = 0;
  bool in_force = false;
  std::uint64_t from_step = 0;  // the first step that follows it; 0: not known (any more)
  std::vector<Key> keys;        // none when not known any more
  std::string optimizer = {};   // that it brought; empty: none
  /// "from step 7 on: optimizer.lr 0.003 → 0.002", "from step 7 on: optimizer adamw → muon"
  std::string describe() const;
};

/// Of the newest change that was ordered and did not come into force, or of the `swap` that is under way, as it
/// describes itself: that it goes with the run's end. Empty: there is neither.
std::string left_behind(Cells& cells, const std::optional<std::string>& swap);

/// The coordinator's part of rule 16: numbers the changes that a person orders, prepares them in this node's cells (the
/// other nodes learn the newest with every answer), and writes down what is in force. One change is under way at a
/// time.
class Changes {
 public:
  /// `recipe`: with the settings of this launch, as they are without any change; it and what follows outlive it.
  /// `said`: keys that its command line sets. Throws Error.
  Changes(const config::Config& recipe, const service::Job& job, Cells& cells, Epochs& epochs,
          std::set<std::string> said = {});

  struct Value {
    std::string key;
    double value = 0;
  };
  /// Prepares a change, or returns the newest when that is the same, and number 0 when the values are in force anyway.
  /// Throws Error(usage) for a key that cannot change and a value out of its range; Error when the run is `ending` or a
  /// change is still under way.
  ChangeState order(const std::vector<Value>& values, bool ending);
  /// Throws Error for a number that there was not.
  ChangeState state(std::uint64_t number);
  /// Prepares a swap to the optimizer of a listed epoch with what its configuration says, and returns its number.
  /// Throws Error when a change is still under way.
  std::uint64_t prepare_swap(std::uint64_t epoch, std::uint64_t warm_steps);
  /// After the refusal of a swap: prepares what is in force again, so that the next change can be ordered.
  void prepare_again(std::uint64_t refused);
  /// Throws Error when a change is still under way.
  void require_none_under_way();
  /// Whether what follows a refused swap, without changing anything, is not in force yet.
  bool restores() const;
  /// Of the effective configuration with the values in force, which the file in the run directory is once they are
  /// noted.
  std::uint64_t configuration_hash();

  /// The newest that is prepared here; nothing before the first.
  std::optional<step_protocol::Setting> prepared() const;

  /// Writes changes that have come into force since the last call into changes.json and config.toml, and returns them.
  /// Throws Error when a file cannot be written.
  std::vector<ChangeState> note();

 private:
  config::Config with(const step_protocol::Setting& setting);
  void write(const step_protocol::Setting& setting);
  bool is_quiet(std::uint64_t number) const;
  ChangeState repeated(const std::vector<Value>& values);
  void fill_difference(ChangeState& state);

  const config::Config& recipe_;
  const service::Job& job_;
  Cells& cells_;
  Epochs& epochs_;
  std::set<std::string> said_;
  std::uint64_t noted_ = 0;                      // newest change that is written down
  std::map<std::uint64_t, std::uint64_t> from_;  // first steps, by number
};

}  // namespace ganymede::launcher
