#include "common/base/error.h"
#include "common/cell/layouts.h"
#include "common/service/run_directory.h"
#include "common/service/service.h"

namespace ganymede::service {

const char* name(Kind kind) {
  constexpr const char* names[] = {"worker", "optimizer", "data", "checkpoint"};
  return names[static_cast<int>(kind)];
}

std::string stem(Kind kind, int rank, std::uint64_t epoch) {
  return epoch == 0 ? fmt::format("{}.{}", name(kind), rank) : fmt::format("{}.{}.{}", name(kind), epoch, rank);
}

std::string stacks_file(const std::string& stem) { return fmt::format("{}/{}.stacks", log_folder, stem); }

Control control_of(shm::Segment& segment) {
  Control control;
  control.block = segment.span<step_protocol::ControlBlock>("block").data();
  control.gradients_ready = segment.span<step_protocol::Word>("gradients_ready");
  control.working_copy_ready = segment.span<step_protocol::Word>("working_copy_ready");
  control.expert_counts = segment.span<std::int64_t>("expert_counts");
  control.services = segment.span<step_protocol::ServiceWords>("services");
  return control;
}

const config::Config& Context::config_of(std::uint64_t epoch) {
  if (epoch != 0) fail("There is no state epoch {} here.", epoch);
  return config();
}

const placement::Placement& Context::placement_of(std::uint64_t epoch) {
  if (epoch != 0) fail("There is no state epoch {} here.", epoch);
  return placement();
}

std::uint64_t Context::optimizer_hash_of(std::uint64_t epoch) {
  fail("The plugins of state epoch {} are not known here.", epoch);
}

EpochControl epoch_control_of(shm::Segment& state) {
  EpochControl control;
  control.words = reinterpret_cast<step_protocol::EpochWords*>(state.span<step_protocol::Word>("words").data());
  control.ready = state.span<step_protocol::Word>("ready").data();
  control.matrices_sent = state.span<step_protocol::Word>("matrices_sent");
  control.matrices_returned = state.span<step_protocol::Word>("matrices_returned");
  if (state.layout().has("reductions")) control.reductions = state.span<double>("reductions");
  return control;
}

EpochControl epoch_control(Context& context, std::uint64_t epoch) {
  return epoch_control_of(context.segment(shm::state_name(epoch)));
}

}  // namespace ganymede::service
