#include "launcher/coordinator/node_messages.h"

#include <gtest/gtest.h>

namespace ganymede::coordinator {
namespace {

TEST(NodeMessages, OfAnotherBuildSurviveTheWay) {
  NodeState state;
  ServiceState service{.kind = service::Kind::data, .pid = 12, .state = "running"};
  service.binary = "programs/a";
  service.trial = true;
  service.refusal = "not here";
  service.refused = 9;
  state.cells.emplace_back().services = {service, {.kind = service::Kind::worker}};
  auto message = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, state); });
  auto services = unpack(*message.as<fbs::NodeReport>()).cells[0].services;
  EXPECT_EQ(services[0].binary, "programs/a");
  EXPECT_TRUE(services[0].trial);
  EXPECT_EQ(services[0].refusal, "not here");
  EXPECT_EQ(services[0].refused, 9u);
  EXPECT_EQ(services[1].binary, "");

  NodeWishes wishes;
  wishes.restarts = {{service::Kind::worker, 3, 98},
                     {service::Kind::worker, 4, 99, ServiceBinary{"f", "/p", 5, "1/2"}}};
  auto order = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, wishes); });
  auto heard = unpack(*order.as<fbs::NodeOrders>()).restarts;
  EXPECT_FALSE(heard[0].binary);
  ASSERT_TRUE(heard[1].binary);
  EXPECT_EQ(heard[1].binary->file, "f");
  EXPECT_EQ(heard[1].binary->path, "/p");
  EXPECT_EQ(heard[1].binary->hash, 5u);
  EXPECT_EQ(heard[1].binary->protocol, "1/2");
}

}  // namespace
}  // namespace ganymede::coordinator
