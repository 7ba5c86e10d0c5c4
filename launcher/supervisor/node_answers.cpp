#include "launcher/supervisor/node_answers.h"

#include <limits>
#include <sstream>

#include "launcher/coordinator/node_messages.h"
#include "launcher/supervisor/answers.h"

namespace ganymede::launcher {
namespace {

using flatbuffers::FlatBufferBuilder;
using msg::Message;

constexpr const char* spare_text = "waiting as a spare: the run has its nodes";

/// A line of a TOML file without the explanation behind it.
std::string setting_of(const std::string& line) {
  std::string text = line.substr(0, line.find("  #"));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

void check_job(const Message& request, std::uint64_t job) {
  std::uint64_t of = request.envelope().job();
  if (of != 0 && of != job) fail("The request is of job {}, not of this one.", of);
}

Message orders(NodeSupervisor& supervisor, const ServiceId& id, const Message& request) {
  return Message::build(supervisor.job().id, request.envelope().id(), [&](FlatBufferBuilder& builder) {
    return Message::body(fbs::CreateOrders(builder, supervisor.generation(), supervisor.wants_end_of(id)));
  });
}

/// Rank 0 alone commits, and it is on node 0.
Message receipt(NodeSupervisor& supervisor, const Message& request) {
  return Message::build(supervisor.job().id, request.envelope().id(), [](FlatBufferBuilder& builder) {
    auto hashes = builder.CreateVectorOfStrings(std::vector<std::string>{});
    auto bytes = builder.CreateVector(std::vector<std::uint64_t>{});
    return Message::body(
        fbs::CreatePartReceipt(builder, false, hashes, bytes, std::numeric_limits<double>::quiet_NaN()));
  });
}

/// False when it has to wait. Throws Error(usage) when this launcher cannot be its node's.
bool admit(Supervisor& supervisor, const WelcomeParts& parts, const fbs::NodeHello& hello) {
  // First: with another number of nodes the configuration differs as well, and that would hide the cause.
  supervisor.nodes().check_count(hello.node(), hello.nodes());
  if (std::string difference = first_difference(parts.own_configuration, hello.node(), hello.configuration()->str());
      !difference.empty())
    fail_usage("Node {} has another configuration than node 0: {}. Give all nodes the same recipe and settings.",
               hello.node(), difference);
  return supervisor.hello({hello.node(), hello.nodes(), hello.seat(), hello.host()->str()});
}

Message welcome(Supervisor& supervisor, const WelcomeParts& parts, const fbs::NodeHello& hello,
                const Message& request) {
  try {
    if (!admit(supervisor, parts, hello)) return coordinator::not_ready(request, spare_text);
  } catch (const Error& error) {
    supervisor.refused(error.what());
    throw;
  }
  const service::Job& job = supervisor.parts().job;
  return Message::build(job.id, request.envelope().id(), [&](FlatBufferBuilder& builder) {
    auto detail = builder.CreateString("");
    auto load_from = builder.CreateString(job.load_from);
    auto configuration = builder.CreateString(parts.configuration);
    auto checkpoints = builder.CreateString(parts.checkpoints);
    auto dataset = builder.CreateString(parts.dataset);
    auto members = builder.CreateVector(job.members);
    return Message::body(fbs::CreateNodeWelcome(builder, true, detail, job.id, parts.load_step, load_from,
                                                job.plugin_hash(), configuration, checkpoints, dataset, members));
  });
}

/// Of a node that has not heard that the world has formed again.
bool is_of_an_earlier_world(const Supervisor& supervisor, const Message& request) {
  bool reports = request.envelope().body_type() == fbs::Body::NodeReport;
  return reports && request.envelope().job() != supervisor.parts().job.id;
}

Message come_again(const Message& request) {
  return Message::build(request.envelope().job(), request.envelope().id(), [](FlatBufferBuilder& builder) {
    return coordinator::pack(
        builder, coordinator::NodeWishes{.phase = coordinator::Phase::reforming, .text = "", .restarts = {}});
  });
}

}  // namespace

bool is_for_coordinator(const Message& request) {
  switch (request.envelope().body_type()) {
    case fbs::Body::StoreSet:
    case fbs::Body::StoreGet:
    case fbs::Body::StoreAdd:
    case fbs::Body::GenerationFailed:
    case fbs::Body::StepReport:
    case fbs::Body::CheckpointCommitted:
    case fbs::Body::CheckpointFailed:
    case fbs::Body::StatusRequest:
    case fbs::Body::StopRequest:
    case fbs::Body::CheckpointRequest:
    case fbs::Body::RestartRequest:
    case fbs::Body::ChangeRequest:
    case fbs::Body::SwapRequest:
    case fbs::Body::RescaleRequest:
      return true;
    default:
      return false;
  }
}

Message answer(NodeSupervisor& supervisor, const Message& request) {
  check_job(request, supervisor.job().id);
  if (const auto* body = request.as<fbs::Register>()) {
    ServiceId id = service_id(body->service(), body->rank());
    supervisor.registered(id, body->pid());
    return orders(supervisor, id, request);
  }
  if (const auto* body = request.as<fbs::Heartbeat>()) {
    ServiceId id = service_id(body->service(), body->rank());
    supervisor.heartbeat(id, *body);
    return orders(supervisor, id, request);
  }
  if (const auto* body = request.as<fbs::FatalReport>()) {
    supervisor.fatal(service_id(body->service(), body->rank()), body->pid(), body->exit_code(), body->text()->str());
    return msg::ack(request);
  }
  if (const auto* body = request.as<fbs::PartDurable>()) {
    supervisor.part(*body);
    return receipt(supervisor, request);
  }
  fail("The launcher of a node does not answer a {}.", fbs::EnumNameBody(request.envelope().body_type()));
}

Message answer_node(Supervisor& supervisor, const WelcomeParts& parts, const std::string& identity,
                    const Message& request) {
  if (is_of_an_earlier_world(supervisor, request)) return come_again(request);
  check_job(request, supervisor.parts().job.id);
  if (const auto* hello = request.as<fbs::NodeHello>()) return welcome(supervisor, parts, *hello, request);
  if (const auto* body = request.as<fbs::NodeReport>()) {
    coordinator::NodeWishes wishes = supervisor.report(coordinator::unpack(*body));
    return Message::build(supervisor.parts().job.id, request.envelope().id(),
                          [&](FlatBufferBuilder& builder) { return coordinator::pack(builder, wishes); });
  }
  if (!is_for_coordinator(request))
    fail("The coordinator does not answer a {} of another node.", fbs::EnumNameBody(request.envelope().body_type()));
  return answer(supervisor, identity, request);
}

std::string first_difference(const std::string& of_node_0, int node, const std::string& of_node) {
  std::istringstream left(of_node_0), right(of_node);
  std::string section, one, other;
  while (true) {
    bool more_left = static_cast<bool>(std::getline(left, one)),
         more_right = static_cast<bool>(std::getline(right, other));
    if (!more_left && !more_right) return "";
    if (!more_left || !more_right) return "one has more keys: are the programs of one build?";
    if (one.starts_with('[')) section = one + " ";
    if (one != other)
      return fmt::format("{}{} on node 0, {} on node {}", section, setting_of(one), setting_of(other), node);
  }
}

}  // namespace ganymede::launcher
