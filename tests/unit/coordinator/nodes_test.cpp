#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/msg/curve.h"
#include "common/step_protocol/change.h"
#include "launcher/coordinator/network_path.h"
#include "launcher/coordinator/node_gate.h"
#include "launcher/coordinator/node_messages.h"
#include "launcher/coordinator/node_table.h"

namespace ganymede::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <class Function>
std::string error_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

config::Config world(int ranks, int ranks_per_node) {
  config::Config config;
  config.parallel.ranks = ranks;
  config.topology.ranks_per_node = ranks_per_node;
  return config;
}

TEST(WorldLayout, TheLastNodeHoldsTheRest) {
  config::Config config = world(5, 2);
  EXPECT_EQ(ranks_of(0, {0, 1, 2}, config).count, 2);
  EXPECT_EQ(ranks_of(2, {0, 1, 2}, config).first, 4);
  EXPECT_EQ(ranks_of(2, {0, 1, 2}, config).count, 1);
  EXPECT_EQ(ranks_of(0, {0}, config).count, 5) << "one node holds all, whatever ranks_per_node is";
}

TEST(WorldLayout, RanksFollowThePositionAmongTheNodesThatTakePart) {
  config::Config config = world(4, 2);
  EXPECT_EQ(ranks_of(3, {0, 3}, config).first, 2);
  EXPECT_EQ(ranks_of(1, {0, 3}, config).count, 0) << "a node that takes no part holds none";
}

TEST(WorldLayout, SparesComeLastAndHoldNoRanks) {
  config::Config config = world(4, 2);
  config.elastic.spare_nodes = 1;
  EXPECT_THAT(first_members(3, config), ElementsAre(0, 1));
  EXPECT_EQ(error_of([&] { check_nodes(3, config); }), "no error");
  EXPECT_THAT(error_of([&] { check_nodes(2, config); }), HasSubstr("with 1 spare (elastic.spare_nodes)"));
  EXPECT_THAT(error_of([&] { check_nodes(1, config); }), HasSubstr("'elastic.spare_nodes' is 1"));
}

TEST(WorldLayout, NodesThatDoNotHoldTheRanksAreRefusedWithNumbers) {
  EXPECT_EQ(error_of([] { check_nodes(2, world(4, 2)); }), "no error");
  EXPECT_EQ(error_of([] { check_nodes(1, world(4, 2)); }), "no error");
  EXPECT_THAT(error_of([] { check_nodes(2, world(4, 0)); }), HasSubstr("topology.ranks_per_node=2"));
  EXPECT_THAT(error_of([] { check_nodes(3, world(4, 2)); }), HasSubstr("are on 2 nodes, but --nodes names 3"));
}

TEST(Addresses, AreReadWithAndWithoutPort) {
  auto nodes = parse_nodes("alpha:4700,beta,[fd00::2]:4701");
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].text(), "alpha:4700");
  EXPECT_EQ(nodes[1].port, 0);
  EXPECT_EQ(nodes[2].host, "fd00::2");
  EXPECT_EQ(nodes[2].text(), "[fd00::2]:4701");
}

TEST(Addresses, WhatIsNoneIsNamed) {
  EXPECT_THAT(error_of([] { parse_nodes("alpha:x,beta"); }), HasSubstr("'alpha:x'"));
  EXPECT_THAT(error_of([] { parse_nodes("alpha:70000,beta"); }), HasSubstr("1 to 65535"));
  EXPECT_THAT(error_of([] { parse_nodes("alpha,beta"); }), HasSubstr("needs a port"));
  EXPECT_THAT(error_of([] { parse_nodes("alpha:1,beta,beta"); }), HasSubstr("named twice"));
  EXPECT_THAT(error_of([] { parse_nodes("[fd00::2:1,beta"); }), HasSubstr("]"));
  EXPECT_THAT(error_of([] { parse_nodes(""); }), HasSubstr("empty"));
}

TEST(NetworkPath, TheLoopbackLeadsToThisMachineItself) {
  EXPECT_EQ(interface_towards("127.0.0.1"), "lo");
  EXPECT_EQ(listening_endpoint({"127.0.0.1", 5}), "tcp://127.0.0.1:5");
  EXPECT_EQ(listening_endpoint({"some-name", 5}), "tcp://*:5");
  EXPECT_THAT(error_of([] { interface_towards("no.such.host.invalid"); }), HasSubstr("no.such.host.invalid"));
}

TEST(NetworkPath, AnInterfaceThatIsNotHereIsRefusedWithThoseThatAre) {
  EXPECT_EQ(error_of([] { check_interface("lo"); }), "no error");
  std::string error = error_of([] { check_interface("no-such-if0"); });
  EXPECT_THAT(error, HasSubstr("'topology.interface' is \"no-such-if0\""));
  EXPECT_THAT(error, HasSubstr("lo"));
}

NodeState report(int node, std::uint64_t session, std::vector<CellState> cells) {
  NodeState state;
  state.node = node;
  state.seat = 9;
  state.session = session;
  state.cells = std::move(cells);
  return state;
}

CellState cell(int rank, std::uint64_t lost = 0) {
  CellState state;
  state.rank = rank;
  state.present = state.loaded = true;
  state.lost = lost;
  return state;
}

/// Node 1 of two, with ranks 2 and 3.
class Nodes : public testing::Test {
 protected:
  NodeTable table_{parse_nodes("alpha:1,beta"), {0, 1}, world(4, 2), 0};
};

TEST(Gate, PortThatIsTakenIsNamedWithTheOptionThatGaveIt) {
  int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  NodeAddress here{"127.0.0.1", ntohs(address.sin_port)};
  std::string error = error_of([&] { NodeGate(here, msg::make_key_pair().secret_key, 2); });
  EXPECT_THAT(error, HasSubstr(here.text()));
  EXPECT_THAT(error, HasSubstr("--nodes"));
  ::close(taken);
}

TEST_F(Nodes, ARunOnOneNodeWaitsForNobody) {
  NodeTable none({}, {0}, world(4, 0), 0);
  EXPECT_TRUE(none.all_here() && none.all_loaded() && none.workers_finished() && none.all_ended(0, true));
  EXPECT_FALSE(none.silent(1e9, 1, 1));
  EXPECT_EQ(none.node_of(3), 0);
}

TEST_F(Nodes, ANodeCountsWhenItHasReported) {
  EXPECT_FALSE(table_.all_here());
  EXPECT_THAT(table_.missing(), ElementsAre(1));
  EXPECT_THAT(table_.take(report(1, 5, {cell(2), cell(3)}), 1), IsEmpty());
  EXPECT_TRUE(table_.all_here());
  EXPECT_THAT(table_.missing(), IsEmpty());
  EXPECT_TRUE(table_.all_loaded());
  EXPECT_EQ(table_.node_of(3), 1);
}

TEST_F(Nodes, EachLostWorkerCountsOnceHoweverOftenItIsReported) {
  table_.take(report(1, 5, {cell(2), cell(3)}), 1);
  EXPECT_THAT(table_.take(report(1, 5, {cell(2), cell(3, 1)}), 2), ElementsAre(3));
  EXPECT_THAT(table_.take(report(1, 5, {cell(2), cell(3, 1)}), 3), IsEmpty());
  EXPECT_THAT(table_.take(report(1, 5, {cell(2, 2), cell(3, 1)}), 4), ElementsAre(2)) << "also two lost in between";
}

TEST_F(Nodes, AReplacedLauncherHasLostAllItsWorkers) {
  table_.take(report(1, 5, {cell(2), cell(3)}), 1);
  EXPECT_THAT(table_.take(report(1, 6, {cell(2), cell(3)}), 2), ElementsAre(2, 3));
}

TEST_F(Nodes, ASecondLauncherOfANodeIsRefused) {
  table_.hello({.node = 1, .nodes = 2, .seat = 9, .host = "beta"}, 0);
  EXPECT_THAT(error_of([&] { table_.hello({1, 2, 10, "gamma"}, 1); }), HasSubstr("is in the run already, on beta"));
  EXPECT_EQ(error_of([&] { table_.hello({1, 2, 10, "gamma"}, 60); }), "no error") << "the first one went away";
  table_.run_begins();
  EXPECT_THAT(error_of([&] { table_.hello({1, 2, 11, "delta"}, 600); }), HasSubstr("on gamma"));
  EXPECT_THAT(error_of([&] { table_.take(report(1, 5, {cell(2), cell(3)}), 2); }), HasSubstr("not the one"));
}

TEST_F(Nodes, WhatCannotBeIsRefused) {
  EXPECT_THAT(error_of([&] { table_.hello({1, 3, 9, "beta"}, 0); }), HasSubstr("started with 3 nodes"));
  EXPECT_THAT(error_of([&] { table_.hello({2, 2, 9, "beta"}, 0); }), HasSubstr("no node 2"));
  EXPECT_THAT(error_of([&] { table_.hello({0, 2, 9, "beta"}, 0); }), HasSubstr("no node 0"));
  EXPECT_THAT(error_of([&] { table_.take(report(1, 5, {cell(0), cell(1)}), 0); }), HasSubstr("other ranks"));
  EXPECT_THAT(error_of([&] { table_.take(report(-1, 5, {cell(2), cell(3)}), 0); }), HasSubstr("no node -1"));
}

TEST_F(Nodes, ASilentNodeIsNamedAfterItsTime) {
  auto late = table_.silent(11, 3, 10);
  ASSERT_TRUE(late);
  EXPECT_FALSE(late->came);
  EXPECT_EQ(late->name, "node 1 (beta)");
  table_.take(report(1, 5, {cell(2), cell(3)}), 11);
  EXPECT_FALSE(table_.silent(14, 3, 10));
  EXPECT_TRUE(table_.silent(14.5, 3, 10)->came);
}

TEST_F(Nodes, TheEndWaitsForEveryNodeThatIsThere) {
  EXPECT_TRUE(table_.all_ended(1, false)) << "it never came";
  EXPECT_FALSE(table_.all_ended(1, true)) << "the coordinator before this one knew it";
  EXPECT_TRUE(table_.all_ended(61, true)) << "launch.node_timeout_seconds";
  table_.hello({.node = 1, .nodes = 2, .seat = 9, .host = "beta"}, 2);
  EXPECT_FALSE(table_.all_ended(3, false)) << "it makes its segments";
  table_.take(report(1, 5, {cell(2), cell(3)}), 4);
  EXPECT_FALSE(table_.all_ended(60, false)) << "a busy machine is silent for long";
  EXPECT_TRUE(table_.all_ended(65, false)) << "it is lost";
  NodeState last = report(1, 5, {cell(2), cell(3)});
  last.ended = true;
  table_.take(last, 60);
  EXPECT_TRUE(table_.all_ended(60, false));
}

TEST(NodeMessages, SurviveTheWay) {
  NodeState state = report(1, 5, {cell(2, 7)});
  state.cells[0].services = {{service::Kind::data, 12, "waiting", 3, "a", "b", 1.5}};
  state.stop = StopWish::now;
  state.restart_events = {{.number = 6, .process = "worker of rank 2", .worker = true, .cause = "exit code 3"},
                          {.number = 7, .process = "data of rank 2", .detect = 2, .restart = 0.5}};
  state.failure = "broken";
  state.exit_code = 75;
  auto message = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, state); });
  NodeState back = unpack(*message.as<fbs::NodeReport>());
  EXPECT_EQ(back.cells[0].lost, 7u);
  EXPECT_EQ(back.cells[0].services[0].kind, service::Kind::data);
  EXPECT_EQ(back.cells[0].services[0].detail, "a");
  EXPECT_EQ(back.stop, StopWish::now);
  ASSERT_EQ(back.restart_events.size(), 2u);
  EXPECT_EQ(back.restart_events[0].process, "worker of rank 2");
  EXPECT_EQ(back.restart_events[0].cause, "exit code 3");
  EXPECT_TRUE(back.restart_events[0].worker);
  EXPECT_FALSE(back.restart_events[0].restart);
  EXPECT_EQ(back.restart_events[1].number, 7u);
  EXPECT_EQ(back.restart_events[1].detect, 2);
  EXPECT_EQ(back.restart_events[1].restart, 0.5);
  EXPECT_EQ(back.failure, "broken");
  EXPECT_EQ(back.exit_code, 75);

  NodeWishes wishes{
      .generation = 4, .phase = Phase::killing, .leaving = true, .exit_code = 2, .text = "x", .restarts = {}};
  wishes.restarts = {{service::Kind::worker, 3, 99}};
  auto order = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, wishes); });
  EXPECT_FALSE(unpack(*order.as<fbs::NodeOrders>()).change);
  wishes.change = step_protocol::Setting{.number = 5, .lr = 0.1, .weight_decay = 0.2, .clip_norm = 0.3};
  wishes.change->hyper_count = 2;
  wishes.change->hyper[1] = 0.7;
  order = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, wishes); });
  NodeWishes heard = unpack(*order.as<fbs::NodeOrders>());
  EXPECT_EQ(heard.generation, 4u);
  EXPECT_EQ(heard.phase, Phase::killing);
  EXPECT_TRUE(heard.leaving);
  EXPECT_EQ(heard.restarts[0].number, 99u);
  ASSERT_TRUE(heard.change);
  EXPECT_EQ(heard.change->number, 5u);
  EXPECT_TRUE(step_protocol::same_values(*heard.change, *wishes.change));
  EXPECT_TRUE(heard.change->intact());
}

TEST(NodeMessages, OfASwapSurviveTheWay) {
  NodeState state = report(1, 5, {cell(2)});
  auto message = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, state); });
  EXPECT_FALSE(unpack(*message.as<fbs::NodeReport>()).epoch);
  state.epoch = EpochProgress{2, EpochStage::failed, 3, "no memory"};
  message = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, state); });
  NodeState back = unpack(*message.as<fbs::NodeReport>());
  ASSERT_TRUE(back.epoch);
  EXPECT_EQ(back.epoch->epoch, 2u);
  EXPECT_EQ(back.epoch->stage, EpochStage::failed);
  EXPECT_EQ(back.epoch->rank, 3);
  EXPECT_EQ(back.epoch->reason, "no memory");

  NodeWishes wishes;
  wishes.change = step_protocol::Setting{.number = 5, .lr = 0.1, .weight_decay = 0.2, .clip_norm = 0.3};
  wishes.change->state_epoch = 2;
  wishes.change->warm_steps = 20;
  placement::OptimizerFacts facts{"normuon", {"momentum", "rows"}, true, {"rows"}, true, {"attention_logit"}};
  wishes.epoch = EpochOrder{2, "[optimizer]", {{facts, "plugins/normuon.so", 77, "1.0"}}};
  auto order = msg::Message::build(1, 1, [&](auto& builder) { return pack(builder, wishes); });
  NodeWishes heard = unpack(*order.as<fbs::NodeOrders>());
  EXPECT_EQ(heard.change->state_epoch, 2u);
  EXPECT_EQ(heard.change->warm_steps, 20u);
  ASSERT_TRUE(heard.epoch);
  EXPECT_EQ(heard.epoch->epoch, 2u);
  EXPECT_EQ(heard.epoch->configuration, "[optimizer]");
  ASSERT_EQ(heard.epoch->plugins.size(), 1u);
  EXPECT_EQ(heard.epoch->plugins[0].facts, facts);
  EXPECT_EQ(heard.epoch->plugins[0].hash, 77u);
  EXPECT_EQ(heard.epoch->plugins[0].version, "1.0");
}

}  // namespace
}  // namespace ganymede::coordinator
