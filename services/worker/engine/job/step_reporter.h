#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <string>
#include <thread>

#include "common/service/service.h"
#include "services/worker/engine/communicators.h"
#include "services/worker/engine/engine.h"

namespace ganymede::worker {

/// What the launcher learns of one step.
struct StepNews {
  StepResult result;  // of a step that this process did not compute itself only `record` and `tokens` are set
  std::uint64_t generation = 0;
  TrafficLines traffic;  // in this step
  std::uint64_t arena_moved = 0;
  double flops = 0, peak_flops = 0;                                   // of the step and of the whole world
  double validation_loss = std::numeric_limits<double>::quiet_NaN();  // NaN: none
  std::string optimizer;                                              // that updated what is in no group of its own
  std::uint64_t swap_steps = 0;  // that the optimizer that is being warmed up follows; 0: there is none
};

/// What the cell says about the optimizer of the step.
void add_optimizer(service::Context& context, StepNews& news);

/// Sends reports to the launcher from a thread of its own, while the next step is computed. A cell keeps the records of
/// the last two steps alone, so no worker gets further ahead of the launcher than that: whatever dies, metrics.jsonl
/// can be completed from the records. A launcher that is away for longer holds up each step for a while only; at most
/// 1,000 reports wait to be sent, then the oldest is dropped and logged.
class StepReporter {
 public:
  explicit StepReporter(service::Context& context);
  /// Sends what is left (at most 10 s) and ends the thread.
  ~StepReporter();
  /// Waits until the launcher has taken all reports but the last `may_wait`, this one included; at most `seconds`, and
  /// not when the service must finish.
  void send(StepNews news, std::size_t may_wait, double seconds);

 private:
  void work();
  bool deliver(const StepNews& news);

  service::Context& context_;
  std::mutex mutex_;
  std::condition_variable changed_, taken_;
  std::deque<StepNews> queue_;
  bool ending_ = false;
  Deadline last_chance_ = Deadline::after_seconds(0);
  std::unique_ptr<msg::Client> client_;
  std::thread thread_;
};

/// The report as a message body.
msg::Message::BodyOffset step_report(flatbuffers::FlatBufferBuilder& builder, const StepNews& news);

}  // namespace ganymede::worker
