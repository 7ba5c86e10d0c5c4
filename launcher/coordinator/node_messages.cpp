#include "launcher/coordinator/node_messages.h"

#include <algorithm>
#include <span>

#include "common/base/error.h"
#include "common/step_protocol/change.h"

namespace ganymede::coordinator {
namespace {

using flatbuffers::FlatBufferBuilder;

constexpr double unknown = -1;  // seconds

static_assert(static_cast<int>(fbs::StopWish::now) == static_cast<int>(StopWish::now));
static_assert(static_cast<int>(fbs::NodePhase::rescuing) == static_cast<int>(Phase::rescuing));
static_assert(static_cast<int>(fbs::EpochState::failed) == static_cast<int>(EpochStage::failed));
static_assert(static_cast<int>(fbs::ServiceKind::checkpoint) == static_cast<int>(service::Kind::checkpoint));

std::string text_of(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

flatbuffers::Offset<fbs::CellReport> pack(FlatBufferBuilder& builder, const CellState& cell) {
  std::vector<flatbuffers::Offset<fbs::ServiceStatus>> services;
  for (const ServiceState& service : cell.services) services.push_back(coordinator::pack(builder, service));
  return fbs::CreateCellReport(builder, cell.rank, cell.present, cell.loaded, cell.finished, cell.running, cell.formed,
                               cell.lost, builder.CreateVector(services), cell.decided);
}

CellState unpack(const fbs::CellReport& report) {
  CellState cell{.rank = report.rank(),
                 .present = report.present(),
                 .loaded = report.loaded(),
                 .finished = report.finished(),
                 .running = report.running(),
                 .formed = report.formed(),
                 .lost = report.lost(),
                 .services = {},
                 .decided = report.decided()};
  for (const fbs::ServiceStatus* service : *report.services()) {
    cell.services.push_back({static_cast<service::Kind>(service->service()), service->pid(), service->state()->str(),
                             service->restarts(), service->detail()->str(), service->operation()->str(),
                             service->age_seconds(), text_of(service->binary()), service->trial(),
                             text_of(service->refusal()), service->refused()});
  }
  return cell;
}

flatbuffers::Offset<fbs::ChangedSetting> pack(FlatBufferBuilder& builder, const step_protocol::Setting& setting) {
  auto hyper = builder.CreateVector(setting.hyper, setting.hyper_count);
  std::vector<fbs::GroupSetting> values;
  for (const auto& group : std::span(setting.groups, setting.group_count)) {
    values.emplace_back(group.lr, group.weight_decay);
  }
  auto groups = builder.CreateVectorOfStructs(values);
  return fbs::CreateChangedSetting(builder, setting.number, setting.lr, setting.weight_decay, setting.clip_norm, hyper,
                                   groups, setting.state_epoch, setting.warm_steps);
}

/// Throws Error when it has more hyper-parameters or groups than there may be.
step_protocol::Setting unpack(const fbs::ChangedSetting& change) {
  const auto& hyper = *change.hyper();
  if (hyper.size() > step_protocol::most_hyper_parameters)
    fail("Change {} of the coordinator has {} hyper-parameters.", change.number(), hyper.size());
  if (change.groups()->size() > step_protocol::most_update_groups)
    fail("Change {} of the coordinator has {} groups.", change.number(), change.groups()->size());
  step_protocol::Setting setting;
  setting.number = change.number();
  setting.lr = change.lr();
  setting.weight_decay = change.weight_decay();
  setting.clip_norm = change.clip_norm();
  for (const fbs::GroupSetting* group : *change.groups())
    setting.groups[setting.group_count++] = {group->lr(), group->weight_decay()};
  setting.hyper_count = hyper.size();
  std::copy(hyper.begin(), hyper.end(), setting.hyper);
  setting.state_epoch = change.state_epoch();
  setting.warm_steps = change.warm_steps();
  return step_protocol::sealed(setting);
}

}  // namespace

flatbuffers::Offset<fbs::ServiceStatus> pack(FlatBufferBuilder& builder, const ServiceState& service) {
  auto state = builder.CreateString(service.state);
  auto detail = builder.CreateString(service.detail);
  auto operation = builder.CreateString(service.operation);
  auto binary = service.binary.empty() ? 0 : builder.CreateString(service.binary);
  auto refusal = service.refusal.empty() ? 0 : builder.CreateString(service.refusal);
  return fbs::CreateServiceStatus(builder, static_cast<fbs::ServiceKind>(service.kind), service.pid, state,
                                  service.restarts, detail, operation, service.age_seconds, binary, service.trial,
                                  refusal, service.refused);
}

flatbuffers::Offset<fbs::ServiceBinary> pack(FlatBufferBuilder& builder, const ServiceBinary& binary) {
  auto file = builder.CreateString(binary.file), path = builder.CreateString(binary.path),
       protocol = builder.CreateString(binary.protocol);
  return fbs::CreateServiceBinary(builder, file, path, binary.hash, protocol);
}

std::optional<ServiceBinary> unpack(const fbs::ServiceBinary* binary) {
  if (binary == nullptr) return std::nullopt;
  return ServiceBinary{binary->file()->str(), binary->path()->str(), binary->hash(), binary->protocol()->str()};
}

flatbuffers::Offset<PackedEvents> pack(FlatBufferBuilder& builder, const std::vector<RestartEvent>& events) {
  std::vector<flatbuffers::Offset<fbs::RestartEvent>> packed;
  for (const RestartEvent& event : events) {
    auto process = builder.CreateString(event.process), cause = builder.CreateString(event.cause);
    packed.push_back(fbs::CreateRestartEvent(
        builder, event.number, event.node, process, event.worker, cause, event.detect, event.restart.value_or(unknown),
        event.reform.value_or(unknown), event.redo.value_or(unknown), event.step, event.generation));
  }
  return builder.CreateVector(packed);
}

std::vector<RestartEvent> unpack(const PackedEvents& events) {
  auto known = [](double seconds) { return seconds < 0 ? std::nullopt : std::optional(seconds); };
  std::vector<RestartEvent> unpacked;
  for (const fbs::RestartEvent* event : events)
    unpacked.push_back({.number = event->number(),
                        .node = event->node(),
                        .process = event->process()->str(),
                        .worker = event->worker(),
                        .cause = event->cause()->str(),
                        .detect = event->detect(),
                        .restart = known(event->restart()),
                        .reform = known(event->reform()),
                        .redo = known(event->redo()),
                        .step = event->step(),
                        .generation = event->generation()});
  return unpacked;
}

msg::Message not_ready(const msg::Message& hello, const std::string& detail) {
  return msg::Message::build(hello.envelope().job(), hello.envelope().id(), [&](FlatBufferBuilder& builder) {
    auto text = builder.CreateString(detail), nothing = builder.CreateString("");
    return msg::Message::body(
        fbs::CreateNodeWelcome(builder, false, text, 0, 0, nothing, 0, nothing, nothing, nothing));
  });
}

flatbuffers::Offset<PackedPlugins> pack(FlatBufferBuilder& builder, const std::vector<service::JobPlugin>& plugins) {
  std::vector<flatbuffers::Offset<fbs::SwapPlugin>> packed;
  for (const service::JobPlugin& plugin : plugins) {
    auto name = builder.CreateString(plugin.facts.name), version = builder.CreateString(plugin.version),
         file = builder.CreateString(plugin.file);
    auto slots = builder.CreateVectorOfStrings(plugin.facts.slots);
    auto reductions = builder.CreateVectorOfStrings(plugin.facts.reductions);
    auto row_slots = builder.CreateVectorOfStrings(plugin.facts.row_slots);
    packed.push_back(fbs::CreateSwapPlugin(builder, name, version, slots, plugin.facts.matrices, file, plugin.hash,
                                           row_slots, plugin.facts.updates_matrix, reductions));
  }
  return builder.CreateVector(packed);
}

std::vector<service::JobPlugin> unpack(const PackedPlugins& plugins) {
  std::vector<service::JobPlugin> unpacked;
  for (const fbs::SwapPlugin* plugin : plugins) {
    placement::OptimizerFacts facts{plugin->name()->str(), {}, plugin->matrices()};
    for (const flatbuffers::String* slot : *plugin->slots()) facts.slots.push_back(slot->str());
    for (const flatbuffers::String* slot : *plugin->row_slots()) facts.row_slots.push_back(slot->str());
    facts.updates_matrix = plugin->updates_matrix();
    for (const flatbuffers::String* one : *plugin->reductions()) facts.reductions.push_back(one->str());
    unpacked.push_back({std::move(facts), plugin->file()->str(), plugin->hash(), plugin->version()->str()});
  }
  return unpacked;
}

msg::Message::BodyOffset pack(FlatBufferBuilder& builder, const NodeState& state) {
  std::vector<flatbuffers::Offset<fbs::CellReport>> cells;
  for (const CellState& cell : state.cells) cells.push_back(pack(builder, cell));
  auto cell_list = builder.CreateVector(cells);
  auto failure = builder.CreateString(state.failure);
  std::vector<flatbuffers::Offset<fbs::PartDurable>> parts;
  for (const PartState& part : state.parts)
    parts.push_back(fbs::CreatePartDurable(builder, part.step, part.rank, part.bytes, builder.CreateString(part.hash)));
  auto part_list = builder.CreateVector(parts);
  flatbuffers::Offset<fbs::EpochReport> epoch = 0;
  if (state.epoch)
    epoch = fbs::CreateEpochReport(builder, state.epoch->epoch, static_cast<fbs::EpochState>(state.epoch->stage),
                                   state.epoch->rank, builder.CreateString(state.epoch->reason));
  auto events = pack(builder, state.restart_events);
  return msg::Message::body(fbs::CreateNodeReport(
      builder, state.node, state.seat, state.session, state.pid, state.keeper_pid, state.generation, state.restarts,
      cell_list, static_cast<fbs::StopWish>(state.stop), state.ended, state.exit_code, failure, state.checkpoint_idle,
      part_list, epoch, events, state.settled));
}

NodeState unpack(const fbs::NodeReport& report) {
  NodeState state{.node = report.node(),
                  .seat = report.seat(),
                  .session = report.session(),
                  .pid = report.pid(),
                  .keeper_pid = report.keeper_pid(),
                  .generation = report.generation(),
                  .restarts = report.restarts(),
                  .cells = {},
                  .stop = static_cast<StopWish>(report.stop()),
                  .ended = report.ended(),
                  .exit_code = report.exit_code(),
                  .failure = report.failure()->str(),
                  .checkpoint_idle = report.checkpoint_idle(),
                  .parts = {}};
  for (const fbs::CellReport* cell : *report.cells()) state.cells.push_back(unpack(*cell));
  for (const fbs::PartDurable* part : *report.parts())
    state.parts.push_back({part->rank(), part->step(), part->bytes(), part->hash()->str()});
  if (const auto* epoch = report.epoch())
    state.epoch = {epoch->epoch(), static_cast<EpochStage>(epoch->state()), epoch->rank(), epoch->reason()->str()};
  state.restart_events = unpack(*report.restart_events());
  state.settled = report.settled();
  return state;
}

msg::Message::BodyOffset pack(FlatBufferBuilder& builder, const NodeWishes& wishes) {
  std::vector<flatbuffers::Offset<fbs::RestartOrder>> restarts;
  for (const RestartOrder& order : wishes.restarts) {
    flatbuffers::Offset<fbs::ServiceBinary> binary = 0;
    if (order.binary) binary = pack(builder, *order.binary);
    restarts.push_back(
        fbs::CreateRestartOrder(builder, static_cast<fbs::ServiceKind>(order.kind), order.rank, order.number, binary));
  }
  auto restart_list = builder.CreateVector(restarts);
  auto text = builder.CreateString(wishes.text);
  flatbuffers::Offset<fbs::ChangedSetting> change = 0;
  if (wishes.change) change = pack(builder, *wishes.change);
  flatbuffers::Offset<fbs::EpochOrder> epoch = 0;
  if (wishes.epoch) {
    auto configuration = builder.CreateString(wishes.epoch->configuration);
    epoch = fbs::CreateEpochOrder(builder, wishes.epoch->epoch, configuration, pack(builder, wishes.epoch->plugins));
  }
  flatbuffers::Offset<fbs::RescueOrder> rescue = 0;
  if (wishes.rescue) {
    std::vector<fbs::StandIn> stand_ins;
    for (const StandIn& one : wishes.rescue->stand_ins) stand_ins.emplace_back(one.rank, one.replicas);
    rescue = fbs::CreateRescueOrder(builder, wishes.rescue->step, builder.CreateVectorOfStructs(stand_ins));
  }
  return msg::Message::body(fbs::CreateNodeOrders(builder, wishes.generation, static_cast<fbs::NodePhase>(wishes.phase),
                                                  wishes.exit_code, text, restart_list, wishes.leaving, change, epoch,
                                                  wishes.stacks, rescue));
}

NodeWishes unpack(const fbs::NodeOrders& orders) {
  NodeWishes wishes{.generation = orders.generation(),
                    .phase = static_cast<Phase>(orders.phase()),
                    .leaving = orders.leaving(),
                    .exit_code = orders.exit_code(),
                    .text = orders.text()->str(),
                    .restarts = {}};
  wishes.stacks = orders.stacks();
  if (const auto* rescue = orders.rescue()) {
    wishes.rescue = RescueOrder{rescue->step(), {}};
    for (const fbs::StandIn* one : *rescue->stand_ins())
      wishes.rescue->stand_ins.push_back({one->rank(), one->replicas()});
  }
  if (const auto* change = orders.change()) wishes.change = unpack(*change);
  if (const auto* epoch = orders.epoch())
    wishes.epoch = {epoch->epoch(), epoch->configuration()->str(), unpack(*epoch->plugins())};
  for (const fbs::RestartOrder* order : *orders.restarts())
    wishes.restarts.push_back(
        {static_cast<service::Kind>(order->service()), order->rank(), order->number(), unpack(order->binary())});
  return wishes;
}

}  // namespace ganymede::coordinator
