#include "launcher/supervisor/step_log.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "launcher/supervisor/last_metrics.h"
#include "launcher/supervisor/service_process.h"
#include "launcher/supervisor/step_line.h"

namespace ganymede::launcher {
namespace {

using step_protocol::SkipReason;

constexpr std::size_t remembered_losses = 256;
constexpr double seconds_between_lines = 30;  // that stay; on a terminal the live line runs below them

using Named = std::vector<std::pair<std::string, double>>;

Named named(const flatbuffers::Vector<flatbuffers::Offset<fbs::LaneTime>>& times) {
  Named result;
  for (const auto* time : times) result.emplace_back(time->lane()->str(), time->busy_ms());
  return result;
}

std::vector<metrics::Record> traffic(const flatbuffers::Vector<flatbuffers::Offset<fbs::TrafficLine>>& lines) {
  std::vector<metrics::Record> records;
  for (const fbs::TrafficLine* line : lines) {
    records.emplace_back()
        .set("bucket", line->bucket()->string_view())
        .set("operation", line->operation()->string_view())
        .set("wire", line->wire()->string_view())
        .set("bytes_inside_node", line->inside())
        .set("bytes_between_nodes", line->between());
  }
  return records;
}

Named named(const flatbuffers::Vector<flatbuffers::Offset<fbs::Named>>& values) {
  Named result;
  for (const auto* value : values) result.emplace_back(value->name()->str(), value->value());
  return result;
}

double tokens_a_second(const fbs::StepReport& report) {
  return report.step_ms() > 0 ? static_cast<double>(report.tokens()) / (report.step_ms() / 1e3) : 0;
}

std::optional<double> mfu(const fbs::StepReport& report) {
  if (!(report.peak_flops() > 0) || !(report.step_ms() > 0)) return std::nullopt;
  if (report.tokens() == 0) return std::nullopt;  // nothing was computed
  return report.flops() / (report.step_ms() / 1e3) / report.peak_flops();
}

/// Which optimizer updated; and which change brings another one, that has followed so many updates.
void write_epoch(metrics::Record& record, std::uint64_t epoch, std::uint64_t change, std::uint64_t followed) {
  record.set("state_epoch", epoch);
  if (change > 0) record.set("swap_change", change).set("swap_followed", followed);
}

std::vector<metrics::Record> records_of(const std::vector<coordinator::RestartEvent>& events) {
  std::vector<metrics::Record> records;
  for (const coordinator::RestartEvent& event : events)
    records.emplace_back()
        .set("process", event.process)
        .set("node", event.node)
        .set("cause", event.cause)
        .set("step", event.step)
        .set("generation", event.generation)
        .set("detect_ms", event.detect * 1e3)
        .set("restart_ms", event.restart.value_or(0) * 1e3)
        .set("reform_ms", event.reform.value_or(0) * 1e3)
        .set("redo_ms", event.redo.value_or(0) * 1e3);
  return records;
}

/// NaN without a sign, which would be printed.
double plain(double value) { return std::isnan(value) ? std::fabs(value) : value; }

}  // namespace

StepLog::StepLog(const std::string& path, std::uint64_t decided, std::uint64_t steps, Terminal& terminal)
    : file_(path), steps_(steps), terminal_(terminal), skips_(terminal) {
  if (std::string warning = file_.drop_after(static_cast<std::int64_t>(decided)); !warning.empty())
    terminal_.line(warning);
  auto last = read_last_metrics(path);
  if (!last) return;
  last_step_ = last->step;
  last_loss_ = last->loss;
  losses_[last->step] = last->loss;
  earlier_restarts_ = last->restarts;
  skips_.go_on_from(last->skips);
}

void StepLog::take(const fbs::StepReport& report, const StepSurroundings& around) {
  if (report.step() <= last_step_) return;
  remember(report);
  write(report, around);
  show(report, around);
  show_waiting(last_step_);
}

void StepLog::line_after(std::uint64_t step, const std::string& line) {
  waiting_.emplace(step, line);
  show_waiting(last_step_);
}

/// With what every line has of the restarts before it.
void StepLog::append(metrics::Record& line, const StepSurroundings& around) {
  line.set("restarts", earlier_restarts_ + around.restarts).set("generation", around.generation);
  if (!over_.empty()) line.set("restart_events", records_of(over_));
  unwritten_.push_back(line);
  over_.clear();
  if (!write_waiting() && unwritten_.size() > most_unwritten)
    fail("{} More than {} lines wait for it.", trouble_, most_unwritten);
}

bool StepLog::write_waiting() {
  try {
    for (; !unwritten_.empty(); unwritten_.pop_front()) file_.append(unwritten_.front());
  } catch (const Error& error) {
    trouble_ = error.what();
    return false;
  }
  return true;
}

void StepLog::show_waiting(std::uint64_t up_to) {
  auto end = waiting_.upper_bound(up_to);
  for (auto line = waiting_.begin(); line != end; ++line) terminal_.line(line->second);
  waiting_.erase(waiting_.begin(), end);
}

StepLog::~StepLog() {
  show_waiting(std::numeric_limits<std::uint64_t>::max());
  if (!write_waiting()) log::error("the last {} lines of the metrics are lost: {}", unwritten_.size(), trouble_);
}

void StepLog::take_record(const step_protocol::DecisionRecord& record, const StepSurroundings& around) {
  last_step_ = record.step;
  last_loss_ = plain(record.loss_sum / static_cast<double>(record.loss_tokens));
  losses_[last_step_] = last_loss_;
  skips_.take(last_step_, static_cast<SkipReason>(record.skip_reason), step_protocol::describe_skip(record));
  metrics::Record line;
  line.set("step", record.step)
      .set("loss", last_loss_)
      .set("grad_norm", record.grad_norm)
      .set("lr", record.lr)
      .set("change", record.change_number)
      .set("loss_tokens", record.loss_tokens);
  skips_.write(line);
  std::uint64_t followed = record.swap_change > 0 ? record.updates - record.swap_updates : 0;
  write_epoch(line, record.state_epoch, record.swap_change, followed);
  append(line, around);
  show_waiting(last_step_);
}

void StepLog::take_gap(std::uint64_t step, const StepSurroundings& around) {
  last_step_ = step;
  log::warn("the report of step {} was lost with its worker: its line in the metrics is empty", step);
  metrics::Record line;
  line.set("step", step).set("loss", std::numeric_limits<double>::quiet_NaN()).set("lost", true);
  skips_.write_counts(line);
  append(line, around);
  show_waiting(last_step_);
}

void StepLog::remember(const fbs::StepReport& report) {
  double now = now_seconds();
  double took = reported_at_ > 0 ? now - reported_at_ : report.step_ms() / 1e3;
  seconds_a_step_ = seconds_a_step_ > 0 ? 0.9 * seconds_a_step_ + 0.1 * took : took;
  reported_at_ = now;
  last_step_ = report.step();
  last_loss_ = plain(report.loss());
  tokens_per_second_ = tokens_a_second(report);
  skips_.take(last_step_, static_cast<SkipReason>(report.skip_reason()), report.skip_text()->str());
  if (!std::isnan(report.validation_loss())) validation_loss_ = report.validation_loss();
  losses_[report.step()] = report.loss();
  if (losses_.size() > remembered_losses) losses_.erase(losses_.begin());
}

void StepLog::write(const fbs::StepReport& report, const StepSurroundings& around) {
  Named memory = named(*report.memory());
  memory.emplace_back("device_predicted_peak", static_cast<double>(report.predicted_peak()));
  memory.emplace_back("device_measured_peak", static_cast<double>(report.measured_peak()));
  memory.emplace_back("host_used", around.host_used);
  memory.emplace_back("host_predicted", around.host_predicted);
  memory.emplace_back("host_limit", around.host_limit);
  metrics::Record record;
  record.set("step", report.step())
      .set("loss", report.loss())
      .set("grad_norm", report.grad_norm())
      .set("lr", report.lr())
      .set("change", report.change())
      .set("tokens_per_second", tokens_per_second_)
      .set("step_ms", report.step_ms())
      .set("lanes", named(*report.lanes()))
      .set("waits", named(*report.waits()))
      .set("imbalance", report.imbalance())
      .set("exposed_communication_ms", report.exposed_communication_ms())
      .set("update_exposed_ms", report.update_exposed_ms())
      .set("memory", memory)
      .set("bytes_moved", named(*report.bytes_moved()))
      .set("traffic", traffic(*report.traffic()))
      .set("loss_tokens", static_cast<std::int64_t>(report.loss_tokens()))
      .set("tokens", static_cast<std::int64_t>(report.tokens()));
  skips_.write(record);
  if (report.exchange_rows_limit() > 0) {
    record.set("exchange_rows_max", report.exchange_rows_max());
    record.set("exchange_rows_limit", report.exchange_rows_limit());
  }
  if (!std::isnan(report.attention_logit_max())) record.set("attention_logit_max", report.attention_logit_max());
  if (report.optimizer() != nullptr) record.set("optimizer", report.optimizer()->string_view());
  write_epoch(record, report.state_epoch(), report.swap_change(), report.swap_followed());
  if (report.swap_change() > 0) record.set("swap_steps", report.swap_steps());
  if (!std::isnan(report.validation_loss())) record.set("validation_loss", report.validation_loss());
  if (report.replay_ms() > 0) record.set("replay_ms", report.replay_ms());
  if (auto utilisation = mfu(report)) record.set("mfu", *utilisation);
  append(record, around);
}

void StepLog::show(const fbs::StepReport& report, const StepSurroundings& around) {
  StepFigures figures{.step = report.step(), .steps = steps_, .loss = plain(report.loss())};
  figures.skipped = report.skip_reason() != 0;
  figures.grad_norm = plain(report.grad_norm());
  figures.lr = report.lr();
  if (report.step_ms() > 0) figures.step_seconds = report.step_ms() / 1e3;
  if (tokens_per_second_ > 0) figures.tokens_per_second = tokens_per_second_;
  figures.mfu = mfu(report);
  if (around.host_limit > 0) figures.memory = StepFigures::Memory{around.host_used, around.host_limit};
  if (report.imbalance() > 0) figures.imbalance = report.imbalance();
  if (report.step() < steps_) figures.eta_seconds = seconds_a_step_ * static_cast<double>(steps_ - report.step());
  std::string line = step_line(figures);
  bool last = report.step() >= steps_ || report.stop();
  bool validated = !std::isnan(report.validation_loss());
  bool permanent = last || validated || shown_at_ == 0 || now_seconds() - shown_at_ >= seconds_between_lines;
  if (permanent) {
    shown_at_ = now_seconds();
    terminal_.live("");
    terminal_.line(line);
  }
  if (validated)
    terminal_.line(fmt::format("validation after step {}: loss {:.4f}", report.step(), report.validation_loss()));
  if (!permanent) terminal_.live(line);
}

double StepLog::loss_of(std::uint64_t step) const {
  auto known = losses_.find(step);
  return known == losses_.end() ? std::numeric_limits<double>::quiet_NaN() : known->second;
}

}  // namespace ganymede::launcher
