#include "launcher/cli/ctl_where.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/os/files.h"
#include "common/service/run_directory.h"
#include "common/service/service.h"
#include "launcher/cli/ask_launcher.h"
#include "launcher/cli/status_view.h"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

constexpr double patience = 5;  // seconds, for services to write their stacks

/// Files that the services have written, by name; those of other nodes lie there.
using Written = std::map<std::string, fs::file_time_type>;

Written written() {
  Written files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(service::log_folder, ignored))
    if (entry.path().extension() == ".stacks") files[entry.path().string()] = entry.last_write_time(ignored);
  return files;
}

/// A service whose stacks are expected: "logs/optimizer.", and ".0.stacks" after a state epoch or nothing.
struct Expected {
  std::string begin, end;
  bool is(const std::string& file) const {
    return file.starts_with(begin) && file.ends_with(end) && file.size() + 1 >= begin.size() + end.size();
  }
};

/// The services that run and log into this run directory, which those of other nodes need not.
std::vector<Expected> expected(const fbs::Status& status) {
  std::vector<Expected> services;
  for (const auto* cell : *status.cells())
    for (const auto* one : *cell->services()) {
      auto kind = static_cast<service::Kind>(one->service());
      bool here = fs::exists(fmt::format("{}/{}.log", service::log_folder, service::stem(kind, cell->rank())));
      if (here && one->state()->str() != "stopped")
        services.push_back(
            {fmt::format("{}/{}.", service::log_folder, service::name(kind)), fmt::format(".{}.stacks", cell->rank())});
    }
  return services;
}

/// Files that are newer than `before`, once there is one of each service or after a while.
std::vector<std::string> await(const Written& before, const std::vector<Expected>& services) {
  Deadline deadline = Deadline::after_seconds(patience);
  while (true) {
    Written now = written();
    std::vector<std::string> fresh;
    for (const auto& [file, time] : now)
      if (auto known = before.find(file); known == before.end() || known->second != time) fresh.push_back(file);
    bool all = std::all_of(services.begin(), services.end(), [&](const Expected& one) {
      return std::any_of(fresh.begin(), fresh.end(), [&](const std::string& file) { return one.is(file); });
    });
    if (all || deadline.passed()) return fresh;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

void where_with_stacks(const std::string& run, bool json) {
  require_alive(run);
  Written before = written();
  msg::Message reply = ask([](flatbuffers::FlatBufferBuilder& builder) {
    return msg::Message::body(fbs::CreateStatusRequest(builder, true));
  });
  const auto* status = reply.as<fbs::Status>();
  if (status == nullptr) fail("The launcher's answer is not a status: are the programs of one build?");
  if (status->detail()->size() > 0) fail("There are no services now: the launcher is {}.", status->detail()->str());
  std::vector<std::string> files = await(before, expected(*status));
  if (json) {
    auto object = nlohmann::ordered_json::parse(where_json(*status));
    object["stacks"] = files;
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("{}\n", where_text(*status));
  for (const std::string& file : files) fmt::print("\n{}\n{}", file, os::read_file(file));
}

}  // namespace ganymede::cli
