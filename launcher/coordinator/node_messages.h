#pragma once

#include "common/msg/message.h"
#include "launcher/coordinator/node_state.h"

/// The plain forms of what nodes and coordinator say, to and from messages.
namespace ganymede::coordinator {

msg::Message::BodyOffset pack(flatbuffers::FlatBufferBuilder& builder, const NodeState& state);
NodeState unpack(const fbs::NodeReport& report);

msg::Message::BodyOffset pack(flatbuffers::FlatBufferBuilder& builder, const NodeWishes& wishes);
NodeWishes unpack(const fbs::NodeOrders& orders);

/// To a NodeHello: it has to wait, for the reason in `detail`.
msg::Message not_ready(const msg::Message& hello, const std::string& detail);

using PackedPlugins = flatbuffers::Vector<flatbuffers::Offset<fbs::SwapPlugin>>;
flatbuffers::Offset<PackedPlugins> pack(flatbuffers::FlatBufferBuilder& builder,
                                        const std::vector<service::JobPlugin>& plugins);
std::vector<service::JobPlugin> unpack(const PackedPlugins& plugins);

using PackedEvents = flatbuffers::Vector<flatbuffers::Offset<fbs::RestartEvent>>;
flatbuffers::Offset<PackedEvents> pack(flatbuffers::FlatBufferBuilder& builder,
                                       const std::vector<RestartEvent>& events);
std::vector<RestartEvent> unpack(const PackedEvents& events);

flatbuffers::Offset<fbs::ServiceBinary> pack(flatbuffers::FlatBufferBuilder& builder, const ServiceBinary& binary);
/// Nothing when the message has none.
std::optional<ServiceBinary> unpack(const fbs::ServiceBinary* binary);

flatbuffers::Offset<fbs::ServiceStatus> pack(flatbuffers::FlatBufferBuilder& builder, const ServiceState& service);

}  // namespace ganymede::coordinator
