#include "tests/fault/fuzz/messages.h"

#include <string>

namespace ganymede::fuzz {
namespace {

using flatbuffers::FlatBufferBuilder;
using msg::Message;

std::uint64_t sum(const flatbuffers::String* text) {
  std::uint64_t total = text->size();
  for (char c : *text) total += static_cast<unsigned char>(c);
  return total;
}

template <class List, class Read>
std::uint64_t sum(const List* list, Read read) {
  std::uint64_t total = 0;
  for (const auto& item : *list) total += read(item);
  return total;
}

std::uint64_t of(const fbs::StepReport& report) {
  auto lane = [](const auto* item) { return sum(item->lane()); };
  auto named = [](const auto* item) { return sum(item->name()); };
  auto line = [](const auto* item) { return sum(item->bucket()) + sum(item->operation()) + sum(item->wire()); };
  return sum(report.lanes(), lane) + sum(report.waits(), lane) + sum(report.bytes_moved(), named) +
         sum(report.memory(), named) + sum(report.traffic(), line) + report.step();
}

std::uint64_t of(const fbs::Status& status) {
  auto service = [](const auto* item) {
    return std::uint64_t{*fbs::EnumNameServiceKind(item->service()) != 0} + sum(item->state()) + sum(item->detail()) +
           sum(item->operation());
  };
  auto cell = [&](const auto* item) { return sum(item->services(), service) + item->rank(); };
  auto launcher = [](const auto* item) { return static_cast<std::uint64_t>(item->pid()); };
  auto event = [](const auto* item) { return sum(item->process()) + sum(item->cause()) + item->step(); };
  return sum(status.run()) + sum(status.state()) + sum(status.cells(), cell) + sum(status.launchers(), launcher) +
         sum(status.detail()) + (status.restart_events() ? sum(status.restart_events(), event) : 0);
}

Message status() {
  return Message::build(1, 2, [](FlatBufferBuilder& b) {
    std::vector<flatbuffers::Offset<fbs::CellStatus>> cells;
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<flatbuffers::Offset<fbs::ServiceStatus>> services;
      for (int kind = 0; kind < 4; ++kind) {
        auto state = b.CreateString("running"), detail = b.CreateString("layer 3"),
             operation = b.CreateString("gather");
        services.push_back(fbs::CreateServiceStatus(b, static_cast<fbs::ServiceKind>(kind), 100 + kind, state, 0,
                                                    detail, operation, 1.5));
      }
      cells.push_back(fbs::CreateCellStatus(b, rank, 0, b.CreateVector(services)));
    }
    std::vector<flatbuffers::Offset<fbs::LauncherStatus>> launchers = {fbs::CreateLauncherStatus(b, 0, 7, 8)};
    auto run = b.CreateString("run"), state = b.CreateString("training");
    auto all = b.CreateVector(cells);
    auto nodes = b.CreateVector(launchers);
    auto detail = b.CreateString("packing");
    std::vector<flatbuffers::Offset<fbs::RestartEvent>> events = {
        fbs::CreateRestartEventDirect(b, 9, 0, "worker of rank 1", true, "killed by SIGKILL", 0, 0.5, 0.1, -1, 4, 2)};
    auto restarts = b.CreateVector(events);
    return Message::body(fbs::CreateStatus(b, run, 5, 10, 1, state, all, nodes, 2.5, 100, 4, detail, 0, 0, restarts));
  });
}

Message step_report() {
  return Message::build(1, 3, [](FlatBufferBuilder& b) {
    auto lanes = [&] {
      std::vector<flatbuffers::Offset<fbs::LaneTime>> list;
      for (const char* name : {"compute", "gather", "reduce"}) {
        list.push_back(fbs::CreateLaneTime(b, b.CreateString(name), 3.5));
      }
      return b.CreateVector(list);
    };
    auto named = [&] {
      std::vector<flatbuffers::Offset<fbs::Named>> list = {fbs::CreateNamed(b, b.CreateString("used"), 1e9)};
      return b.CreateVector(list);
    };
    auto first = lanes(), second = lanes();
    auto third = named(), fourth = named();
    auto line =
        fbs::CreateTrafficLine(b, b.CreateString("dense"), b.CreateString("gather"), b.CreateString("bf16"), 8, 9);
    auto traffic = b.CreateVector(&line, 1);
    auto skipped = b.CreateString("not finite");
    fbs::StepReportBuilder report(b);
    report.add_skip_text(skipped);
    report.add_traffic(traffic);
    report.add_step(9);
    report.add_lanes(first);
    report.add_waits(second);
    report.add_bytes_moved(third);
    report.add_memory(fourth);
    return Message::body(report.Finish());
  });
}

template <class Fill>
Message build(Fill fill) {
  return Message::build(1, 4, [&](FlatBufferBuilder& b) { return Message::body(fill(b)); });
}

}  // namespace

std::vector<Message> valid_messages() {
  std::vector<Message> all;
  all.push_back(status());
  all.push_back(step_report());
  all.push_back(build([](auto& b) { return fbs::CreateRegister(b, fbs::ServiceKind::data, 2, 77); }));
  all.push_back(build([](auto& b) {
    auto detail = b.CreateString("waiting for batch 7");
    return fbs::CreateHeartbeat(b, fbs::ServiceKind::worker, 1, 77, fbs::ServiceState::waiting, 5, 6, detail);
  }));
  all.push_back(build([](auto& b) {
    return fbs::CreateFatalReport(b, fbs::ServiceKind::checkpoint, 1, 1, b.CreateString("The disk is full."));
  }));
  all.push_back(build([](auto& b) {
    auto key = b.CreateString("world/0");
    return fbs::CreateStoreSet(b, 1, key, b.CreateVector(std::vector<std::uint8_t>{1, 2, 3}));
  }));
  all.push_back(build([](auto& b) { return fbs::CreateStoreAdd(b, 1, b.CreateString("world/count"), 1); }));
  all.push_back(build([](auto& b) { return fbs::CreateGenerationFailed(b, 3, 1, b.CreateString("no peer")); }));
  all.push_back(build([](auto& b) { return fbs::CreateRestartRequest(b, fbs::ServiceKind::optimizer, 0); }));
  all.push_back(build([](auto& b) { return fbs::CreateStopRequest(b, true); }));
  all.push_back(build([](auto& b) {
    auto name = b.CreateString("muon"), version = b.CreateString("1"), file = b.CreateString("plugins/muon.so");
    auto slots = b.CreateVectorOfStrings({"momentum"});
    auto row_slots = b.CreateVectorOfStrings({"rows"}), reductions = b.CreateVectorOfStrings({"attention_logit"});
    auto plugin = fbs::CreateSwapPlugin(b, name, version, slots, true, file, 7, row_slots, true, reductions);
    auto configuration = b.CreateString("[optimizer]");
    return fbs::CreateSwapRequest(b, 0, configuration, b.CreateVector(&plugin, 1), 20, false);
  }));
  return all;
}

std::uint64_t read_all(const Message& message) {
  const fbs::Envelope& envelope = message.envelope();
  std::uint64_t total = envelope.id() + envelope.job();
  if (const auto* body = message.as<fbs::Status>()) total += of(*body);
  if (const auto* body = message.as<fbs::StepReport>()) total += of(*body);
  if (const auto* body = message.as<fbs::Heartbeat>()) {
    total += sum(body->detail()) + std::string(fbs::EnumNameServiceState(body->state())).size();
  }
  if (const auto* body = message.as<fbs::FatalReport>()) total += sum(body->text());
  if (const auto* body = message.as<fbs::PartDurable>()) total += sum(body->hash());
  if (const auto* body = message.as<fbs::CheckpointFailed>()) total += sum(body->text());
  if (const auto* body = message.as<fbs::StoreSet>()) {
    total += sum(body->key()) + sum(body->value(), [](std::uint8_t byte) { return std::uint64_t{byte}; });
  }
  if (const auto* body = message.as<fbs::StoreGet>()) total += sum(body->key());
  if (const auto* body = message.as<fbs::StoreAdd>()) total += sum(body->key());
  if (const auto* body = message.as<fbs::GenerationFailed>()) total += sum(body->cause());
  if (const auto* body = message.as<fbs::SwapRequest>()) {
    total += sum(body->configuration());
    for (const auto* plugin : *body->plugins()) {
      total += sum(plugin->name()) + sum(plugin->version()) + sum(plugin->file());
      for (const auto* slot : *plugin->slots()) total += sum(slot);
    }
  }
  if (const auto* body = message.as<fbs::Refused>()) total += sum(body->text());
  return total;
}

}  // namespace ganymede::fuzz
