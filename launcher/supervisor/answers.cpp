#include "launcher/supervisor/answers.h"

#include <cmath>

#include "launcher/coordinator/node_messages.h"
#include "launcher/supervisor/status_report.h"

namespace ganymede::launcher {
namespace {

using flatbuffers::FlatBufferBuilder;
using msg::Message;

static_assert(static_cast<int>(fbs::SwapState::refused) == static_cast<int>(SwapState::refused));

/// `identity`: of the program of a person, which is its own, or of a node that passes it on.
SwapOrder order_of(const fbs::SwapRequest& body, const std::string& identity) {
  return {body.configuration()->str(),
          coordinator::unpack(*body.plugins()),
          body.warm_steps(),
          body.dry_run(),
          body.base(),
          identity.starts_with("ctl.") ? identity : ""};
}

/// One request with everything that its answer needs.
struct Exchange {
  Supervisor& supervisor;
  const std::string& identity;
  const Message& request;

  Message reply(const std::function<Message::BodyOffset(FlatBufferBuilder&)>& fill) const {
    return Message::build(supervisor.parts().job.id, request.envelope().id(), fill);
  }

  Message orders(const ServiceId& id) const {
    return reply([&](FlatBufferBuilder& builder) {
      return Message::body(
          fbs::CreateOrders(builder, supervisor.membership().generation(), supervisor.wants_end_of(id)));
    });
  }

  Message value(bool found, const coordinator::KeyValueStore::Value& bytes, std::int64_t number) const {
    return reply([&](FlatBufferBuilder& builder) {
      return Message::body(fbs::CreateStoreValue(builder, found, builder.CreateVector(bytes), number));
    });
  }

  Message answer(const fbs::Register& body) const {
    ServiceId id = service_id(body.service(), body.rank());
    supervisor.registered(id, body.pid());
    return orders(id);
  }

  Message answer(const fbs::Heartbeat& body) const {
    ServiceId id = service_id(body.service(), body.rank());
    supervisor.heartbeat(id, body);
    return orders(id);
  }

  Message answer(const fbs::FatalReport& body) const {
    supervisor.fatal(service_id(body.service(), body.rank()), body.pid(), body.exit_code(), body.text()->str());
    return msg::ack(request);
  }

  Message answer(const fbs::StepReport& body) const {
    supervisor.step(body);
    return msg::ack(request);
  }

  Message answer(const fbs::PartDurable& body) const {
    auto receipt = supervisor.part(body);
    double loss = supervisor.parts().steps.loss_of(body.step());
    if (std::isnan(loss)) loss = supervisor.parts().cells.loss_of(body.step());
    return reply([&](FlatBufferBuilder& builder) {
      auto hashes = builder.CreateVectorOfStrings(receipt.hashes);
      auto bytes = builder.CreateVector(receipt.bytes);
      return Message::body(fbs::CreatePartReceipt(builder, receipt.complete, hashes, bytes, loss));
    });
  }

  Message answer(const fbs::CheckpointCommitted& body) const {
    supervisor.committed(body.step(), body.bytes(), body.seconds());
    return msg::ack(request);
  }

  Message answer(const fbs::CheckpointFailed& body) const {
    supervisor.checkpoint_failed(body.step(), body.rank(), body.text()->str());
    return msg::ack(request);
  }

  Message answer(const fbs::StoreSet& body) const {
    supervisor.store().set(body.generation(), body.key()->str(), {body.value()->begin(), body.value()->end()});
    return msg::ack(request);
  }

  Message answer(const fbs::StoreGet& body) const {
    auto found = supervisor.store().get(body.generation(), body.key()->str());
    return value(found.has_value(), found.value_or(coordinator::KeyValueStore::Value{}), 0);
  }

  Message answer(const fbs::StoreAdd& body) const {
    std::int64_t number =
        supervisor.store().add(body.generation(), body.key()->str(), body.amount(), identity, request.envelope().id());
    return value(true, {}, number);
  }

  Message answer(const fbs::GenerationFailed& body) const {
    supervisor.generation_failed(body.generation(), body.rank(), body.cause()->str());
    return msg::ack(request);
  }

  Message answer(const fbs::StatusRequest& body) const {
    if (body.stacks()) supervisor.order_stacks();
    return reply([&](FlatBufferBuilder& builder) { return status_report(builder, supervisor); });
  }

  Message answer(const fbs::StopRequest& body) const {
    body.now() ? supervisor.stop_now_after_answer() : supervisor.stop();
    return msg::ack(request);
  }

  Message answer(const fbs::CheckpointRequest&) const {
    supervisor.checkpoint();
    return msg::ack(request);
  }

  Message answer(const fbs::RestartRequest& body) const {
    supervisor.restart(service_id(body.service(), body.rank()), coordinator::unpack(body.binary()));
    return msg::ack(request);
  }

  Message answer(const fbs::RescaleRequest& body) const {
    supervisor.rescale({.ranks = body.ranks(),
                        .expert_group = body.expert_group(),
                        .replicas = body.replicas(),
                        .without = {body.without()->begin(), body.without()->end()}},
                       body.now());
    return msg::ack(request);
  }

  Message answer(const fbs::ChangeRequest& body) const {
    std::vector<Changes::Value> values;
    for (const fbs::Named* key : *body.keys()) values.push_back({key->name()->str(), key->value()});
    ChangeState state = body.number() == 0 ? supervisor.change(values) : supervisor.change_state(body.number());
    return reply([&](FlatBufferBuilder& builder) {
      std::vector<flatbuffers::Offset<fbs::ChangedKey>> keys;
      for (const ChangeState::Key& one : state.keys)
        keys.push_back(fbs::CreateChangedKey(builder, builder.CreateString(one.key), one.was, one.now));
      return Message::body(
          fbs::CreateChangeReceipt(builder, state.number, state.in_force, state.from_step, builder.CreateVector(keys)));
    });
  }

  Message answer(const fbs::SwapRequest& body) const {
    SwapReport report =
        body.epoch() == 0 ? supervisor.swap(order_of(body, identity)) : supervisor.swap_report(body.epoch());
    return reply([&](FlatBufferBuilder& builder) {
      auto before = builder.CreateString(report.before), after = builder.CreateString(report.after),
           reason = builder.CreateString(report.reason);
      return Message::body(fbs::CreateSwapReceipt(builder, report.epoch, static_cast<fbs::SwapState>(report.state),
                                                  before, after, report.change, report.from_step, report.warm_steps,
                                                  report.warmed, report.rank, reason, report.cells,
                                                  report.needed_per_cell, report.available));
    });
  }

  /// Answers when the body is one of the given types.
  template <class... Bodies>
  Message dispatch() const {
    std::optional<Message> reply;
    ((request.as<Bodies>() ? (void)reply.emplace(answer(*request.as<Bodies>())) : (void)0), ...);
    if (!reply) fail("A launcher does not answer a {}.", fbs::EnumNameBody(request.envelope().body_type()));
    return std::move(*reply);
  }
};

}  // namespace

ServiceId service_id(fbs::ServiceKind kind, int rank) {
  if (kind > fbs::ServiceKind::checkpoint) fail("'{}' is not a service of a cell.", fbs::EnumNameServiceKind(kind));
  return {static_cast<service::Kind>(kind), rank};
}

Message answer(Supervisor& supervisor, const std::string& identity, const Message& request) {
  std::uint64_t job = request.envelope().job();
  if (job != 0 && job != supervisor.parts().job.id) fail("The request is of job {}, not of this one.", job);
  return Exchange{supervisor, identity, request}
      .dispatch<fbs::Register, fbs::Heartbeat, fbs::FatalReport, fbs::StepReport, fbs::PartDurable,
                fbs::CheckpointCommitted, fbs::CheckpointFailed, fbs::StoreSet, fbs::StoreGet, fbs::StoreAdd,
                fbs::GenerationFailed, fbs::StatusRequest, fbs::StopRequest, fbs::CheckpointRequest,
                fbs::RestartRequest, fbs::ChangeRequest, fbs::SwapRequest, fbs::RescaleRequest>();
}

}  // namespace ganymede::launcher
