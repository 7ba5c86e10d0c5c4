#pragma once

#include <optional>

#include "common/step_protocol/control_block.h"

/// How a person's change reaches the steps (rules 16 and 17). The launcher of each node prepares a setting in its
/// cells; a worker offers what is prepared in its own cell; a step follows the setting that all ranks offered, else the
/// one before. The next number is prepared only after a step has followed the last one. So what a rank may need is the
/// setting of the record before and the prepared one, whose numbers are equal or neighbours, and neither slot is
/// written meanwhile.
namespace ganymede::step_protocol {

/// With its checksum.
Setting sealed(Setting setting);

/// Whether both say the same, whatever their numbers.
bool same_values(const Setting& one, const Setting& other);

/// Writes a setting into its slot and then says that it is prepared. A number that is not newer is left alone. The
/// launcher's; one thread.
void prepare(ControlBlock& block, const Setting& setting);

/// A copy of the setting of this number; nothing when its slot holds another one, or none that is whole.
std::optional<Setting> find_setting(const ControlBlock& block, std::uint64_t number);

/// The same, where it has to be there. Throws Error when the slot does not hold it whole.
Setting setting_of(const ControlBlock& block, std::uint64_t number);

/// The prepared setting, for a vote: read again until it was not replaced meanwhile. Throws Error.
Setting offered_setting(const ControlBlock& block);

/// Says that this cell cannot follow the swap of this number. The worker's and the launcher's.
void refuse(ControlBlock& block, std::uint64_t number);

/// The newest decided record's change number and the first step that follows it; both 0 before the first step.
struct InForce {
  std::uint64_t number = 0, since_step = 0;
};
InForce in_force(const ControlBlock& block);

/// The state epoch of the newest decided record: whose words say what is committed. The first one before the first
/// step.
std::uint64_t epoch_in_force(const ControlBlock& block);

}  // namespace ganymede::step_protocol
