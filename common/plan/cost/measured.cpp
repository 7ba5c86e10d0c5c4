#include "common/plan/cost/measured.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/base/error.h"
#include "common/base/run_command.h"
#include "common/os/files.h"

namespace ganymede::plan {
namespace {

using nlohmann::json;

constexpr int format = 2;
constexpr double longest_ms = 1e9;  // of an operation: eleven days

std::string bucket_name(const Operation& operation, const placement::Placement& placement) {
  return operation.bucket < 0 ? "" : placement.buckets[operation.bucket].name;
}

/// "forward", "forward experts".
std::string kind_of(const std::string& kind, const std::string& part) {
  return part.empty() ? kind : kind + " " + part;
}

/// What two operations have in common that may stand for one another: "forward of a layer with experts".
std::string class_of(const std::string& kind, int layer, const std::string& bucket, const config::Config& config) {
  std::string place = layer < 0                                                        ? "embedding"
                      : layer >= config.model.layers                                   ? "head"
                      : layer < config.model.dense_layers || config.model.experts == 0 ? "dense layer"
                                                                                       : "layer with experts";
  return kind + " " + place + " " + bucket.substr(bucket.rfind('.') + 1);
}

/// The middle one; of an even number the mean of the two in the middle. Not of nothing.
double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

/// Durations by a key.
struct Durations {
  std::map<std::string, std::vector<double>> all;
  void add(const std::string& key, double ms) { all[key].push_back(ms); }
  bool find(const std::string& key, double& ms) const {
    auto found = all.find(key);
    if (found == all.end()) return false;
    ms = median(found->second);
    return true;
  }
};

/// Names of operations in the order of a plan: a bucket may be gathered several times, at different cost.
struct Numbered {
  std::map<std::string, int> seen;
  std::string key(const std::string& kind, int layer, const std::string& bucket, int row) {
    std::string name = fmt::format("{} {} {} {}", kind, layer, bucket, row);
    int number = seen[name]++;
    return fmt::format("{} {}", name, number);
  }
};

}  // namespace

OperationMeter::OperationMeter(const StepPlan& plan)
    : plan_(plan), samples_(plan.operations.size()), collective_(plan.operations.size(), false) {}

void OperationMeter::add(const std::vector<Span>& spans) {
  GANYMEDE_CHECK(spans.size() == samples_.size(), "{} spans of a plan of {} operations", spans.size(), samples_.size());
  std::size_t place = static_cast<std::size_t>(steps_) % remembered;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    double ms = std::max(0.0, spans[i].end_ms - spans[i].start_ms - spans[i].outside.words_ms);
    if (samples_[i].size() < remembered)
      samples_[i].push_back(ms);
    else
      samples_[i][place] = ms;
    if (spans[i].outside.collectives_ms > 0) collective_[i] = true;
  }
  ++steps_;
}

std::vector<double> OperationMeter::durations() const {
  std::vector<double> durations(samples_.size(), 0.0);
  for (std::size_t i = 0; i < samples_.size() && steps_ > 0; ++i)
    durations[i] = collective_[i] ? least(samples_[i]) : median(samples_[i]);
  return durations;
}

std::string OperationMeter::json(const placement::Placement& placement) const {
  std::vector<double> ms = durations();
  nlohmann::ordered_json object = {
      {"format", format}, {"rank", placement.rank}, {"ranks", placement.world}, {"steps", steps_}};
  object["operations"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < ms.size() && steps_ > 0; ++i) {
    const Operation& o = plan_.operations[i];
    object["operations"].push_back({{"kind", name(o.kind)},
                                    {"part", name(o.part)},
                                    {"layer", o.layer},
                                    {"bucket", bucket_name(o, placement)},
                                    {"row", o.row},
                                    {"count", samples_[i].size()},
                                    {"ms", ms[i]},
                                    {"median_ms", median(samples_[i])},
                                    {"mean_ms", mean(samples_[i])},
                                    {"least_ms", least(samples_[i])}});
  }
  return object.dump(1) + "\n";
}

MeasuredOperations::MeasuredOperations(const std::string& file) : file_(file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) fail_usage("Measurements {} do not exist.", file);
  if (!std::filesystem::is_regular_file(file, error)) fail_usage("Measurements {} are not a file.", file);
  try {
    auto object = json::parse(os::read_file(file));
    if (object.at("format").get<int>() != format) {
      fail_usage("{} is of another format than {}: measure again, with check.measure_operations = true.", file, format);
    }
    rank_ = object.at("rank").get<int>();
    ranks_ = object.at("ranks").get<int>();
    steps_ = object.at("steps").get<int>();
    if (ranks_ < 1 || rank_ < 0 || rank_ >= ranks_ || steps_ < 0) {
      fail_usage("{}: rank {} of {} ranks and {} steps cannot have been measured.", file, rank_, ranks_, steps_);
    }
    for (const auto& o : object.at("operations")) {
      entries_.push_back({kind_of(o.at("kind").get<std::string>(), o.value("part", "")),
                          o.at("bucket").get<std::string>(), o.at("layer").get<int>(), o.at("row").get<int>(),
                          o.at("ms").get<double>()});
      const Entry& entry = entries_.back();
      if (!(entry.ms >= 0 && entry.ms <= longest_ms)) {
        fail_usage("{}: the duration of operation {} is {} ms.", file, entries_.size() - 1, entry.ms);
      }
      if (entry.layer < -1 || entry.row < -1) {
        fail_usage("{}: operation {} is of layer {} and row {}.", file, entries_.size() - 1, entry.layer, entry.row);
      }
    }
  } catch (const json::exception& e) {
    fail_usage("{} is not a file of measured operations ({}): a run with check.measure_operations = true writes one.",
               file, sentence_of(e));
  }
}

std::vector<double> MeasuredOperations::durations(const StepPlan& plan, const config::Config& config,
                                                  const placement::Placement& placement) const {
  Durations exact, alike, kinds;
  Numbered in_file, in_plan;
  for (const Entry& e : entries_) {
    exact.add(in_file.key(e.kind, e.layer, e.bucket, e.row), e.ms);
    alike.add(class_of(e.kind, e.layer, e.bucket, config), e.ms);
    kinds.add(e.kind, e.ms);
  }
  std::vector<double> durations;
  for (const Operation& o : plan.operations) {
    std::string kind = kind_of(name(o.kind), name(o.part)), bucket = bucket_name(o, placement);
    double ms = 0;
    if (!exact.find(in_plan.key(kind, o.layer, bucket, o.row), ms) &&
        !alike.find(class_of(kind, o.layer, bucket, config), ms) && !kinds.find(kind, ms)) {
      fail_usage("{} has no duration of `{}`: measure a run of this recipe with check.measure_operations = true.",
                 file_, kind);
    }
    durations.push_back(ms);
  }
  return durations;
}

}  // namespace ganymede::plan
