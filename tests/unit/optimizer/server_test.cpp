#include "services/optimizer/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "common/base/error.h"
#include "tests/unit/optimizer/cell.h"
#include "tests/unit/optimizer/lone_context.h"

namespace ganymede::optimizer {
namespace {

/// Serves in a thread until `done` or ten seconds have passed; then the service has to finish.
void serve_until(LoneContext& context, const std::function<bool()>& done) {
  context.stop = false;
  std::string fault;
  std::thread server([&] {
    try {
      serve(context);
    } catch (const Error& error) {
      fault = error.what();
    }
  });
  Deadline deadline = Deadline::after_seconds(10);
  while (!done() && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(done());
  context.stop = true;
  server.join();
  EXPECT_EQ(fault, "");
}

bool published(LoneContext& context, std::uint64_t step) {
  for (const auto& word : context.control().working_copy_ready) {
    if (word.load() != step) return false;
  }
  return true;
}

TEST(OptimizerServer, FreshStartDrawsPublishesAndAppliesWhatIsDecided) {
  LoneContext context(Cell::small_config());
  step_protocol::ControlBlock& control = *context.control().block;
  serve_until(context, [&] { return control.state_ready.load() == 1; });
  EXPECT_TRUE(published(context, 0));
  auto master = context.segment("master").span<float>("values");
  const placement::OwnedRange& first = context.placement().owned[0];
  float drawn = model_spec::initial_value(context.placement().parameters[first.parameter], 1, first.first);
  EXPECT_EQ(master[first.shard_offset], drawn);

  decide(context);
  serve_until(context, [&] { return published(context, 1); });
  EXPECT_NEAR(master[first.shard_offset], drawn - 1e-2, 1e-5);
  EXPECT_EQ(context.segment("working").span<float>("values")[first.shard_offset], master[first.shard_offset]);
  EXPECT_GT(context.reports.load(), 0);
}

TEST(OptimizerServer, WaitsForTheRestoredCheckpoint) {
  LoneContext context(Cell::small_config());
  step_protocol::ControlBlock& control = *context.control().block;
  control.load_step = 5;
  control.decided_step = 5;
  service::epoch_control(context, 0).words->chunks_done = 5 * context.placement().chunks.size();
  serve_until(context, [&] { return context.reports.load() > 0; });
  EXPECT_EQ(control.state_ready.load(), 0u);
  EXPECT_FALSE(published(context, 5));

  auto master = context.segment("master").span<float>("values");
  std::fill(master.begin(), master.end(), 0.25f);
  control.restored = 1;
  serve_until(context, [&] { return control.state_ready.load() == 1; });
  EXPECT_TRUE(published(context, 5));
  EXPECT_THAT(context.segment("working").span<float>("values"), testing::Each(0.25f));

  decide(context);
  serve_until(context, [&] { return published(context, 6); });
}

TEST(OptimizerServer, ReplacementKeepsAStateThatIsReady) {
  LoneContext context(Cell::small_config());
  step_protocol::ControlBlock& control = *context.control().block;
  serve_until(context, [&] { return control.state_ready.load() == 1; });
  auto master = context.segment("master").span<float>("values");
  master[0] = context.segment("working").span<float>("values")[0] = 7;
  int reports = context.reports.load();
  serve_until(context, [&] { return context.reports.load() > reports; });
  EXPECT_EQ(master[0], 7);
}

TEST(OptimizerServer, ReplacementThatFindsAChangedMasterDoesNotGoOn) {
  LoneContext context(Cell::small_config());
  step_protocol::ControlBlock& control = *context.control().block;
  serve_until(context, [&] { return control.state_ready.load() == 1; });
  const placement::OwnedRange& last = context.placement().owned.back();
  context.segment("master").span<float>("values")[static_cast<std::size_t>(last.shard_offset)] += 1;
  try {
    context.stop = false;
    serve(context);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(context.placement().parameters[last.parameter].name));
  }
}

TEST(OptimizerServer, PluginThatChangedSinceTheRunBeganIsRefused) {
  LoneContext context(Cell::small_config());
  service::Job other = context.facts;
  other.plugins[0].hash++;
  service::write_job(other);
  try {
    serve(context);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("was changed since the run began"));
  }
}

TEST(OptimizerServer, GivesASnapshotUpBeforeWhoeverWaitsForTheUpdateGivesItUp) {
  for (double timeout : {5.0, 120.0, 1800.0}) {
    config::Config config = Cell::small_config();
    config.launch.collective_timeout_seconds = timeout;
    EXPECT_LT(side_wait_seconds(config), 0.8 * timeout);
  }
}

}  // namespace
}  // namespace ganymede::optimizer
