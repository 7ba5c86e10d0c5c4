#include <filesystem>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/os/files.h"
#include "common/service/json_fields.h"
#include "common/service/run_directory.h"

namespace ganymede::service {

namespace {

std::string job_text() {
  std::error_code ignored;
  auto kind = std::filesystem::symlink_status(job_file, ignored).type();
  std::string file = std::filesystem::absolute(job_file, ignored).string();
  if (kind == std::filesystem::file_type::not_found) {
    fail("{} was removed while the run goes on: start the run again.", file);
  }
  try {
    return os::read_file(file);
  } catch (const Error& error) {
    fail("The facts about the job are not there for its services: {} Move it away and start the run again.",
         error.what());
  }
}

std::vector<JobPlugin> plugins_of(const JsonFields& fields) {
  std::vector<JobPlugin> plugins;
  for (const JsonFields& plugin : fields.objects("plugins")) {
    placement::OptimizerFacts facts{plugin.text("name"), plugin.texts("slots"), plugin.number("matrices") != 0};
    if (plugin.has("row_slots")) facts.row_slots = plugin.texts("row_slots");
    facts.updates_matrix = plugin.has("updates_matrix") && plugin.number("updates_matrix") != 0;
    if (plugin.has("reductions")) facts.reductions = plugin.texts("reductions");
    plugins.push_back({std::move(facts), plugin.text("file"), plugin.number("hash"),
                       plugin.has("version") ? plugin.text("version") : std::string()});
  }
  return plugins;
}

std::vector<JobEpoch> epochs_of(const JsonFields& fields) {
  std::vector<JobEpoch> epochs;
  for (const JsonFields& epoch : fields.objects("epochs"))
    epochs.push_back({epoch.number("number"), epoch.text("config"), plugins_of(epoch)});
  return epochs;
}

nlohmann::json json_of(const std::vector<JobPlugin>& plugins) {
  nlohmann::json array = nlohmann::json::array();
  for (const JobPlugin& plugin : plugins) {
    array.push_back({{"name", plugin.facts.name},
                     {"slots", plugin.facts.slots},
                     {"matrices", plugin.facts.matrices ? 1 : 0},
                     {"row_slots", plugin.facts.row_slots},
                     {"updates_matrix", plugin.facts.updates_matrix ? 1 : 0},
                     {"reductions", plugin.facts.reductions},
                     {"file", plugin.file},
                     {"hash", plugin.hash},
                     {"version", plugin.version}});
  }
  return array;
}

std::vector<placement::OptimizerFacts> facts_of(const std::vector<JobPlugin>& plugins) {
  std::vector<placement::OptimizerFacts> facts;
  for (const JobPlugin& plugin : plugins) facts.push_back(plugin.facts);
  return facts;
}

}  // namespace

std::vector<placement::OptimizerFacts> Job::optimizers() const { return facts_of(plugins); }
std::vector<placement::OptimizerFacts> JobEpoch::optimizers() const { return facts_of(plugins); }

JobEpoch Job::epoch(std::uint64_t number) const {
  for (const JobEpoch& epoch : epochs)
    if (epoch.number == number) return epoch;
  if (number != 0 || !epochs.empty()) fail("{} has no state epoch {}: start the run again", job_file, number);
  return {0, config_file, plugins};
}

JobEpoch Job::first_epoch() const { return epochs.empty() ? epoch(0) : epochs.front(); }

std::uint64_t plugin_hash(const std::vector<JobPlugin>& plugins) {
  if (plugins.size() == 1) return plugins.front().hash;
  std::string text;
  for (const JobPlugin& plugin : plugins) text += fmt::format("{} {:016x}\n", plugin.facts.name, plugin.hash);
  return hash64(text);
}

Job read_job() {
  JsonFields fields(job_file, job_text(), "remove it and start the run again");
  Job job;
  job.id = fields.number("job");
  job.plugins = plugins_of(fields);
  job.load_from = fields.text("load_from");
  job.interface = fields.text("interface");
  job.dataset = fields.text("dataset");
  if (fields.has("epochs")) job.epochs = epochs_of(fields);
  if (fields.has("last_epoch")) job.last_epoch = fields.number("last_epoch");
  if (fields.has("members")) job.members = fields.small_numbers("members");
  return job;
}

void write_job(const Job& job) {
  nlohmann::json object = {{"job", job.id},
                           {"plugins", json_of(job.plugins)},
                           {"load_from", job.load_from},
                           {"interface", job.interface},
                           {"dataset", job.dataset}};
  for (const JobEpoch& epoch : job.epochs)
    object["epochs"].push_back(
        {{"number", epoch.number}, {"config", epoch.config}, {"plugins", json_of(epoch.plugins)}});
  if (job.last_epoch > 0) object["last_epoch"] = job.last_epoch;
  if (!job.members.empty()) object["members"] = job.members;
  os::write_file_atomically(job_file, json_text(object, job_file));
  read_job();  // a link to a device swallows what is written
}

}  // namespace ganymede::service
