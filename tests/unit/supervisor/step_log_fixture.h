#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/msg/message.h"
#include "launcher/supervisor/step_log.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::launcher {

using step_protocol::SkipReason;

/// What a worker reports of a step.
struct Report {
  std::uint64_t step = 1;
  double loss = 2.5;
  SkipReason skip = SkipReason::none;
  double validation_loss = std::nan(""), attention_logit_max = std::nan("");
};

inline msg::Message message(const Report& report) {
  return msg::Message::build(1, 1, [&](flatbuffers::FlatBufferBuilder& builder) {
    auto lanes = builder.CreateVector(std::vector{fbs::CreateLaneTimeDirect(builder, "compute", 7.5)});
    auto waits = builder.CreateVector(std::vector{fbs::CreateLaneTimeDirect(builder, "data", 0.5)});
    auto bytes = builder.CreateVector(std::vector{fbs::CreateNamedDirect(builder, "all_gather", 1e6)});
    auto memory = builder.CreateVector(std::vector{fbs::CreateNamedDirect(builder, "pool", 4096)});
    auto moved = fbs::CreateTrafficLine(builder, builder.CreateString("experts"), builder.CreateString("gather"),
                                        builder.CreateString("fp8"), 1000, 200);
    auto traffic = builder.CreateVector(&moved, 1);
    auto skip_text =
        builder.CreateString(report.skip == SkipReason::non_finite ? "it is not finite" : "it is too large");
    fbs::StepReportBuilder body(builder);
    body.add_step(report.step);
    body.add_loss(report.loss);
    body.add_grad_norm(0.1);
    body.add_lr(1e-3);
    body.add_change(2);
    body.add_tokens(512);
    body.add_loss_tokens(500);
    body.add_step_ms(100);
    body.add_skip_reason(static_cast<std::uint64_t>(report.skip));
    body.add_skip_text(skip_text);
    body.add_imbalance(1.5);
    body.add_exposed_communication_ms(12.5);
    body.add_update_exposed_ms(1.25);
    body.add_lanes(lanes);
    body.add_waits(waits);
    body.add_bytes_moved(bytes);
    body.add_traffic(traffic);
    body.add_memory(memory);
    body.add_flops(1e9);
    body.add_peak_flops(1e11);
    body.add_validation_loss(report.validation_loss);
    body.add_attention_logit_max(report.attention_logit_max);
    return msg::Message::body(body.Finish());
  });
}

/// A metrics file in a folder of its own.
class StepLogTest : public ::testing::Test {
 protected:
  void take(StepLog& log, const Report& report) {
    auto held = message(report);
    log.take(*held.as<fbs::StepReport>(),
             {.generation = 3, .restarts = 2, .host_used = 1, .host_predicted = 2, .host_limit = 3});
  }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/metrics.jsonl";
  Terminal silent_{-1, false};
};

}  // namespace ganymede::launcher
