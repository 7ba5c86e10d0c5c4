#include "services/worker/engine/job/step_reporter.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/machine.h"
#include "common/step_protocol/change.h"
#include "common/step_protocol/skip.h"

namespace ganymede::worker {
namespace {

constexpr std::size_t longest_queue = 1000;
constexpr auto look_up_every = std::chrono::milliseconds(50);
constexpr double answer_seconds = 5;
constexpr double farewell_seconds = 10;

using Pairs = std::vector<std::pair<std::string, double>>;

template <class Create>
auto table(flatbuffers::FlatBufferBuilder& builder, const Pairs& pairs, const Create& create) {
  std::vector<decltype(create(builder, builder.CreateString(""), 0.0))> rows;
  for (const auto& [name, value] : pairs) rows.push_back(create(builder, builder.CreateString(name), value));
  return builder.CreateVector(rows);
}

auto named(flatbuffers::FlatBufferBuilder& builder, const Pairs& pairs) {
  return table(builder, pairs, [](auto& b, auto name, double value) { return fbs::CreateNamed(b, name, value); });
}

auto times(flatbuffers::FlatBufferBuilder& builder, const Pairs& pairs) {
  return table(builder, pairs, [](auto& b, auto name, double value) { return fbs::CreateLaneTime(b, name, value); });
}

Pairs lane_times(const StepResult& result) {
  Pairs pairs;
  for (int i = 0; i < plan::lane_count; ++i) {
    pairs.emplace_back(plan::name(static_cast<plan::Lane>(i)), result.lanes[i].busy_ms);
  }
  return pairs;
}

Pairs wait_times(const StepResult& result) {
  Pairs pairs;
  for (int i = 0; i < wait_kinds; ++i) pairs.emplace_back(name(static_cast<WaitKind>(i)), result.waits_ms[i]);
  pairs.emplace_back("compute_lane", result.lanes[static_cast<int>(plan::Lane::compute)].wait_ms);
  return pairs;
}

Pairs bytes_moved(const StepNews& news) {
  Pairs pairs;
  for (const char* operation :
       {"gather", "reduce", "replica_reduce", "dispatch", "combine", "update_send", "update_return", "control"}) {
    double bytes = 0;
    for (const TrafficLine& line : news.traffic) {
      if (line.operation == operation) bytes += static_cast<double>(line.inside + line.between);
    }
    pairs.emplace_back(operation, bytes);
  }
  pairs.emplace_back("arena", static_cast<double>(news.arena_moved));
  return pairs;
}

auto traffic_of(flatbuffers::FlatBufferBuilder& builder, const TrafficLines& lines) {
  std::vector<flatbuffers::Offset<fbs::TrafficLine>> made;
  for (const TrafficLine& line : lines) {
    auto bucket = builder.CreateString(line.cargo.bucket), operation = builder.CreateString(line.operation);
    auto wire = builder.CreateString(line.cargo.wire);
    made.push_back(fbs::CreateTrafficLine(builder, bucket, operation, wire, line.inside, line.between));
  }
  return builder.CreateVector(made);
}

Pairs memory(const StepResult& result) {
  return {{"rss", static_cast<double>(os::resident_bytes())},
          {"pool", static_cast<double>(result.pool_bytes)},
          {"arena", static_cast<double>(result.arena_bytes)},
          {"rotary_tables", static_cast<double>(result.rotary_bytes)}};
}

}  // namespace

void add_optimizer(service::Context& context, StepNews& news) {
  const step_protocol::DecisionRecord& record = news.result.record;
  news.optimizer = context.config_of(record.state_epoch).optimizer.name;
  if (record.swap_change == 0) return;
  news.swap_steps = step_protocol::setting_of(*context.control().block, record.swap_change).warm_steps;
}

msg::Message::BodyOffset step_report(flatbuffers::FlatBufferBuilder& builder, const StepNews& news) {
  const StepResult& result = news.result;
  const step_protocol::DecisionRecord& record = result.record;
  auto lanes = times(builder, lane_times(result));
  auto waits = times(builder, wait_times(result));
  auto moved = named(builder, bytes_moved(news));
  auto used = named(builder, memory(result));
  auto traffic = traffic_of(builder, news.traffic);
  auto optimizer = builder.CreateString(news.optimizer);
  auto skip_text = builder.CreateString(step_protocol::describe_skip(record));
  fbs::StepReportBuilder report(builder);
  report.add_step(record.step);
  report.add_loss(record.loss_sum / static_cast<double>(record.loss_tokens));
  report.add_grad_norm(record.grad_norm);
  report.add_lr(record.lr);
  report.add_change(record.change_number);
  report.add_loss_tokens(static_cast<std::int64_t>(record.loss_tokens));
  report.add_tokens(static_cast<std::int64_t>(result.tokens));
  report.add_step_ms(result.wall_ms);
  report.add_skip_reason(record.skip_reason);
  report.add_skip_text(skip_text);
  report.add_stop(record.stop_after != 0);
  report.add_imbalance(result.imbalance);
  report.add_exposed_communication_ms(result.exposed_communication_ms);
  report.add_update_exposed_ms(result.update_exposed_ms);
  report.add_lanes(lanes);
  report.add_waits(waits);
  report.add_bytes_moved(moved);
  report.add_memory(used);
  report.add_traffic(traffic);
  report.add_predicted_peak(static_cast<std::uint64_t>(result.predicted_peak));
  report.add_measured_peak(static_cast<std::uint64_t>(result.measured_peak));
  report.add_exchange_rows_max(result.exchange_rows);
  report.add_exchange_rows_limit(result.exchange_rows_limit);
  report.add_generation(news.generation);
  report.add_flops(news.flops);
  report.add_peak_flops(news.peak_flops);
  report.add_validation_loss(news.validation_loss);
  report.add_optimizer(optimizer);
  report.add_state_epoch(record.state_epoch);
  report.add_swap_change(record.swap_change);
  if (record.swap_change > 0) report.add_swap_followed(record.updates - record.swap_updates);
  report.add_swap_steps(news.swap_steps);
  report.add_attention_logit_max(result.attention_logit_max);
  report.add_replay_ms(result.replay_ms);
  return msg::Message::body(report.Finish());
}

StepReporter::StepReporter(service::Context& context)
    : context_(context), client_(context.launcher_client()), thread_([this] { work(); }) {}

StepReporter::~StepReporter() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    last_chance_ = Deadline::after_seconds(farewell_seconds);
  }
  changed_.notify_all();
  thread_.join();
}

void StepReporter::send(StepNews news, std::size_t may_wait, double seconds) {
  std::unique_lock lock(mutex_);
  queue_.push_back(std::move(news));
  if (queue_.size() > longest_queue) {
    log::warn("the report of step {} is dropped: the launcher has not answered for long",
              queue_.front().result.record.step);
    queue_.pop_front();
  }
  changed_.notify_all();
  Deadline deadline = Deadline::after_seconds(seconds);
  while (queue_.size() > may_wait && !deadline.passed() && !context_.finishing()) taken_.wait_for(lock, look_up_every);
}

void StepReporter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty() || (ending_ && last_chance_.passed())) return;
    StepNews news = queue_.front();
    lock.unlock();
    bool delivered = deliver(news);
    lock.lock();
    // The front may have been dropped meanwhile.
    if (delivered && !queue_.empty() && queue_.front().result.record.step == news.result.record.step)
      queue_.pop_front();
    if (delivered) taken_.notify_all();
  }
}

bool StepReporter::deliver(const StepNews& news) {
  try {
    client_->call([&](flatbuffers::FlatBufferBuilder& builder) { return step_report(builder, news); },
                  Deadline::after_seconds(answer_seconds));
    return true;
  } catch (const Error& error) {
    log::warn("the report of step {} was not taken, it is sent again: {}", news.result.record.step, error.what());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return false;
  }
}

}  // namespace ganymede::worker
