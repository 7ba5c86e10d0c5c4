#include <filesystem>

#include "common/base/error.h"
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

}  // namespace

Job read_job() {
  JsonFields fields(job_file, job_text(), "remove it and start the run again");
  Job job;
  job.id = fields.number("job");
  job.slots = fields.texts("slots");
  job.plugin = fields.text("plugin");
  job.plugin_hash = fields.number("plugin_hash");
  job.load_from = fields.text("load_from");
  job.interface = fields.text("interface");
  job.dataset = fields.text("dataset");
  return job;
}

void write_job(const Job& job) {
  nlohmann::json object = {{"job", job.id},
                           {"slots", job.slots},
                           {"plugin", job.plugin},
                           {"plugin_hash", job.plugin_hash},
                           {"load_from", job.load_from},
                           {"interface", job.interface},
                           {"dataset", job.dataset}};
  os::write_file_atomically(job_file, json_text(object, job_file));
  read_job();  // a link to a device swallows what is written
}

}  // namespace ganymede::service
