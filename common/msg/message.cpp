#include "common/msg/message.h"

#include <algorithm>
#include <cstring>

#include "common/base/error.h"

namespace ganymede::msg {
namespace {

// Far above what any message of ours has; they bound the verifier's work on a message made to be slow.
constexpr flatbuffers::uoffset_t deepest = 8;
constexpr flatbuffers::uoffset_t most_tables = 100'000;
constexpr std::size_t smallest_message = 16;

bool known(const fbs::ServiceStatus* status) { return status->service() <= fbs::ServiceKind::MAX; }

template <class Cells>
bool all_known(const Cells& cells) {
  return std::all_of(cells.begin(), cells.end(), [](const auto* cell) {
    return std::all_of(cell->services()->begin(), cell->services()->end(),
                       [](const fbs::ServiceStatus* status) { return known(status); });
  });
}

bool in_range(const fbs::NodeOrders& orders) {
  return orders.phase() <= fbs::NodePhase::MAX &&
         std::all_of(orders.restarts()->begin(), orders.restarts()->end(),
                     [](const auto* restart) { return restart->service() <= fbs::ServiceKind::MAX; });
}

/// The verifier does not look at enums, and a reader that indexes a table with one must not have to.
bool enums_in_range(const fbs::Envelope& envelope) {
  auto names_service = [](const auto* body) { return body->service() <= fbs::ServiceKind::MAX; };
  if (const auto* body = envelope.body_as_Register()) return names_service(body);
  if (const auto* body = envelope.body_as_Heartbeat())
    return names_service(body) && body->state() <= fbs::ServiceState::MAX;
  if (const auto* body = envelope.body_as_FatalReport()) return names_service(body);
  if (const auto* body = envelope.body_as_RestartRequest()) return names_service(body);
  if (const auto* body = envelope.body_as_Status()) return all_known(*body->cells());
  if (const auto* body = envelope.body_as_NodeReport())
    return body->stop() <= fbs::StopWish::MAX && all_known(*body->cells());
  if (const auto* body = envelope.body_as_NodeOrders()) return in_range(*body);
  return true;
}

}  // namespace

Message Message::parse(std::span<const std::byte> bytes) {
  if (bytes.size() > largest_message) {
    fail("A message of {} bytes is longer than the {} that are allowed.", bytes.size(), largest_message);
  }
  if (bytes.size() < smallest_message) fail("A message of {} bytes is too short to be one.", bytes.size());
  Message message;
  message.data_.resize((bytes.size() + 7) / 8);
  message.size_ = bytes.size();
  std::memcpy(message.data_.data(), bytes.data(), bytes.size());
  const auto* start = reinterpret_cast<const std::uint8_t*>(message.data_.data());
  flatbuffers::Verifier verifier(start, message.size_, deepest, most_tables);
  if (!fbs::VerifyEnvelopeBuffer(verifier)) fail("A message of {} bytes is damaged.", bytes.size());
  fbs::Body type = message.envelope().body_type();
  if (type == fbs::Body::NONE || type > fbs::Body::MAX) {
    fail("A message has the unknown kind {}.", static_cast<int>(type));
  }
  if (!enums_in_range(message.envelope())) {
    fail("A message of kind {} has an enum value out of range.", fbs::EnumNameBody(type));
  }
  return message;
}

Message Message::build(std::uint64_t job, std::uint64_t id,
                       const std::function<BodyOffset(flatbuffers::FlatBufferBuilder&)>& fill) {
  flatbuffers::FlatBufferBuilder builder;
  BodyOffset body = fill(builder);
  fbs::FinishEnvelopeBuffer(builder, fbs::CreateEnvelope(builder, job, id, body.type, body.offset));
  return parse({reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()});
}

Message ack(const Message& request) {
  return Message::build(request.envelope().job(), request.envelope().id(),
                        [](auto& builder) { return Message::body(fbs::CreateAck(builder)); });
}

Message refused(const Message& request, int exit_code, const std::string& text) {
  return Message::build(request.envelope().job(), request.envelope().id(), [&](auto& builder) {
    return Message::body(fbs::CreateRefused(builder, exit_code, builder.CreateString(text)));
  });
}

}  // namespace ganymede::msg
