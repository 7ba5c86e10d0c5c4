#include "services/worker/engine/job/peak.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/os/files.h"
#include "common/os/machine.h"
#include "services/worker/engine/process_settings.h"

namespace ganymede::worker {
namespace {

constexpr const char* figure = "flops_per_second";

/// What the file holds; 0 when it is missing, damaged or of another place.
double known(const std::string& file, const nlohmann::json& place) {
  if (!std::filesystem::exists(file)) return 0;
  nlohmann::json record = nlohmann::json::parse(os::read_file(file), nullptr, false);
  if (!record.is_object() || record.value("place", nlohmann::json()) != place) return 0;
  auto found = record.find(figure);
  return found != record.end() && found->is_number() && *found > 0 ? found->get<double>() : 0;
}

}  // namespace

double peak_flops(const config::Config& config, const std::string& file, const std::string& cpu, double measured) {
  nlohmann::json place = {
      {"cpu", cpu}, {"threads", config.compute.threads}, {"bf16", config.compute.dtype == config::Dtype::bf16}};
  double before = known(file, place);
  if (before >= measured) return before;
  nlohmann::json record = {{"place", place}, {figure, measured}};
  os::write_file_atomically(file, record.dump(2) + "\n");
  return measured;
}

double peak_flops(const config::Config& config, const std::string& file) {
  return peak_flops(config, file, os::inspect_machine().cpu_name, measure_peak_flops(config.compute.dtype));
}

}  // namespace ganymede::worker
