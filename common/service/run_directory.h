#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/placement/update_groups.h"
#include "common/step_protocol/step_statistics.h"

/// What lies where in a run directory. All names are relative to it: every process of a run changes into it first,
/// so that socket paths stay short.
namespace ganymede::service {

constexpr const char* config_file = "config.toml";  // the effective configuration
constexpr const char* job_file = "job.json";        // facts for the services, see Job
constexpr const char* metrics_file = "metrics.jsonl";
constexpr const char* lock_file = "ipc/run.lock";  // held by the keeper while the run lives
constexpr const char* launcher_socket = "ipc/launcher.sock";
constexpr const char* keeper_socket = "ipc/keeper.sock";
constexpr const char* log_folder = "logs";               // logs/worker.0.log, logs/launcher.log, …
constexpr const char* checkpoint_folder = "checkpoint";  // rank.<r>/ (RocksDB), manifest.<step>.json
constexpr const char* plugin_folder = "plugins";         // copies of plugins under their hash
constexpr const char* program_folder = "programs";       // copies of services' programs under their hash

/// Stacks of all threads of the service with this stem, when it was asked for them last: "logs/worker.0.stacks".
std::string stacks_file(const std::string& stem);

/// A plugin that updates parameters of the run.
struct JobPlugin {
  placement::OptimizerFacts facts;
  std::string file;        // its copy in the run directory
  std::uint64_t hash = 0;  // of the file's content
  std::string version = {};
};

/// Over names and hashes of plugins: what decision records carry.
std::uint64_t plugin_hash(const std::vector<JobPlugin>& plugins);

/// A state epoch: with which optimizer its segments are laid out and updated.
struct JobEpoch {
  std::uint64_t number = 0;
  std::string config;              // the effective configuration with it, a file in the run directory
  std::vector<JobPlugin> plugins;  // in the order of config::optimizers_of
  std::vector<placement::OptimizerFacts> optimizers() const;
};

/// Facts about the job that services need and the configuration does not hold.
struct Job {
  std::uint64_t id = 0;            // random, drawn when a launch begins; a restarted launcher keeps it
  std::vector<JobPlugin> plugins;  // in the order of config::optimizers_of
  std::string load_from;           // checkpoint folder that holds load_step; empty: this run's own
  std::string interface = "lo";    // network interface between the nodes of the run
  std::string dataset = {};        // hash of the dataset's content
  /// Those whose segments there are, ascending, once its optimizer was to be swapped; none: it has the first one alone,
  /// with `plugins` and config_file. No number is given twice.
  std::vector<JobEpoch> epochs = {};
  std::uint64_t last_epoch = 0;   // the highest number that was given
  std::vector<int> members = {};  // nodes that take part, by their index in --nodes

  /// Throws Error when there is none of this number.
  JobEpoch epoch(std::uint64_t number) const;
  JobEpoch first_epoch() const;
  /// Of the first epoch.
  std::vector<placement::OptimizerFacts> optimizers() const;
  std::uint64_t plugin_hash() const { return service::plugin_hash(plugins); }
};
/// Of the current folder. Both throw Error naming the file; a write leaves the old or the new content.
Job read_job();
void write_job(const Job& job);

/// With what a checkpoint's state was updated.
struct ManifestOptimizer {
  std::string name, version, hash;  // hash: of the plugin's file, 16 digits
};

/// Manifest of one complete checkpoint, "checkpoint/manifest.<step, 12 digits>.json".
struct Manifest {
  struct Part {
    int rank = 0;
    std::uint64_t bytes = 0;
    std::string hash;  // over the part's keys and values, as the checkpoint service defines it
  };
  std::uint64_t step = 0;
  int world = 0, expert_group = 0;
  double loss = 0;                            // of the step; NaN is kept
  std::string optimizer, model_hash, config;  // config: the effective configuration, for eval and generate
  std::string tokenizer;                      // kind and hash, for generate
  std::vector<Part> parts;
  std::string dataset = {};   // hash of the dataset's content
  std::uint64_t written = 0;  // seconds since 1970, when the checkpoint was complete; 0: not known
  std::optional<step_protocol::StepStatistics> statistics = {};  // up to and with `step`; nothing: not known
  std::uint64_t updates = 0;                       // that the parameters have seen; a manifest without it means `step`
  std::vector<ManifestOptimizer> optimizers = {};  // in the order of config::optimizers_of; none: not known
  std::uint64_t bytes() const;
};
std::string manifest_name(std::uint64_t step);
/// Committed when it returns: written beside, synced, renamed. Throws Error.
void write_manifest(const std::string& folder, const Manifest& manifest);
/// A manifest that cannot be used: not readable, no JSON, a field missing, of a wrong type or beyond its bounds,
/// another step than its name says, parts that are not one for each rank.
struct DamagedManifest {
  std::uint64_t step = 0;    // as its name says
  std::string file, reason;  // reason: a sentence that names the file
};
/// All manifests in a folder, oldest first.
struct Manifests {
  std::vector<Manifest> intact;
  std::vector<DamagedManifest> damaged;
  /// The damaged ones of later steps than the newest intact one: what a reader of the newest one passes over.
  std::vector<DamagedManifest> passed_over() const;
};
/// Those in `folder` (a checkpoint folder); none when there is no such folder. While another process adds and removes
/// some, it is what the folder held at one moment. Throws Error when the folder cannot be read.
Manifests find_manifests(const std::string& folder);
/// The intact ones alone.
std::vector<Manifest> read_manifests(const std::string& folder);
/// The intact one of `step` (0: the newest) of those that `folder` holds. Throws Error: of
/// kind usage when there is none, naming those that there are; else why it is damaged.
Manifest choose_manifest(const Manifests& manifests, const std::string& folder, std::uint64_t step);
/// The checkpoint folder of a run directory, or `folder` itself when manifests lie in it. Throws Error(usage) when
/// it is neither.
std::string find_checkpoints(const std::string& folder);

}  // namespace ganymede::service
