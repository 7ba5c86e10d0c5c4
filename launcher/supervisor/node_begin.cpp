#include "launcher/supervisor/node_begin.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include "common/msg/client.h"
#include "common/os/files.h"
#include "common/os/machine.h"
#include "common/service/run_directory.h"
#include "launcher/coordinator/network_path.h"
#include "launcher/coordinator/node_key.h"

namespace ganymede::launcher {
namespace {

namespace fs = std::filesystem;

constexpr auto look_up_every = std::chrono::milliseconds(200);
constexpr double answer_seconds = 1;
constexpr double shared_folder_seconds = 20;  // until a network's file system shows what another node wrote

std::string token_file() { return fmt::format("{}/nodes.token", service::checkpoint_folder); }

void pause_or_stop(Signals& signals) {
  std::this_thread::sleep_for(look_up_every);
  stop_if_signalled(signals);
}

Welcome read_welcome(const fbs::NodeWelcome& body) {
  coordinator::Members members;
  if (body.members()) members.assign(body.members()->begin(), body.members()->end());
  return {.job = body.job(),
          .load_step = body.load_step(),
          .plugin_hash = body.plugin_hash(),
          .load_from = body.load_from()->str(),
          .configuration = body.configuration()->str(),
          .checkpoints = body.checkpoints()->str(),
          .dataset = body.dataset()->str(),
          .members = std::move(members)};
}

}  // namespace

CoordinatorWay find_coordinator(const Options& options, double seconds, Signals& signals) {
  std::string file = options.key.empty() ? fmt::format("../{}", coordinator::node_key_file) : options.key;
  if (!options.key.empty() && !fs::exists(file)) fail_usage("--key {}: there is no such file.", file);
  Deadline deadline = Deadline::after_seconds(seconds);
  while (true) {
    std::string key = coordinator::read_node_key(file);
    if (!key.empty()) return {coordinator::coordinator_endpoint(options.nodes[0]), key};
    if (deadline.passed())
      fail(
          "Node 0 has not made its key {} within {}: start it, or, if it has another file system, copy the file here "
          "and name it with --key.",
          fs::absolute(file).lexically_normal().string(), human_seconds(seconds));
    pause_or_stop(signals);
  }
}

Welcome meet_coordinator(const Options& options, const CoordinatorWay& way, std::uint64_t seat, double seconds,
                         Signals& signals, Terminal& terminal) {
  std::string own = config::effective(config::load(options.recipe, options.settings));
  auto hello = [&](flatbuffers::FlatBufferBuilder& builder) {
    auto host = builder.CreateString(os::host_name());
    auto configuration = builder.CreateString(own);
    return msg::Message::body(fbs::CreateNodeHello(builder, options.node, static_cast<int>(options.nodes.size()), seat,
                                                   0, host, configuration));
  };
  msg::Client client(way.endpoint, fmt::format("hello.{}.{}", options.node, seat), 0, way.key);
  Deadline deadline = Deadline::after_seconds(seconds);
  bool answered = false;
  while (true) {
    try {
      msg::Message reply = client.call(hello, Deadline::after_seconds(answer_seconds));
      const auto* welcome = reply.as<fbs::NodeWelcome>();
      if (!welcome) fail_usage("{} is no coordinator: are the programs of one build?", way.endpoint);
      if (welcome->ready()) return read_welcome(*welcome);
      answered = true;
      deadline = Deadline::after_seconds(seconds);
      terminal.live(welcome->detail()->str());
    } catch (const msg::Refusal&) {
      throw;
    } catch (const Error& error) {
      if (error.code() == ExitCode::usage) throw;
      if (deadline.passed())
        throw Error(answered ? ExitCode::can_go_on : ExitCode::failed,
                    fmt::format("The coordinator, node 0 at {}, cannot be reached within {}: {}", way.endpoint,
                                human_seconds(seconds), error.what()));
    }
    pause_or_stop(signals);
  }
}

std::uint64_t seat_of_keeper(const std::string& run) {
  struct stat lock {};
  if (::stat(service::lock_file, &lock) != 0) return hash64(run);
  // The keeper writes its lock file when it starts.
  return hash64(fmt::format("{} {} {} {}", os::host_name(), run, lock.st_mtim.tv_sec, lock.st_mtim.tv_nsec)) | 1;
}

void leave_checkpoint_token(const std::string& token) { os::write_file_atomically(token_file(), token + "\n"); }

void check_checkpoint_folder(int node, const std::string& token, double seconds, Signals& signals) {
  Deadline deadline = Deadline::after_seconds(std::min(seconds, shared_folder_seconds));
  std::error_code ignored;
  while (!fs::exists(token_file(), ignored) || os::read_file(token_file()) != token + "\n") {
    if (deadline.passed())
      fail_usage(
          "{} of node {} is not the folder of node 0: checkpoints have to lie on a file system that all nodes "
          "share.",
          fs::weakly_canonical(service::checkpoint_folder, ignored).string(), node);
    pause_or_stop(signals);
  }
}

}  // namespace ganymede::launcher
