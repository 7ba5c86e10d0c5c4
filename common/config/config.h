#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// The typed configuration of a run. Plain data with defaults; `fields.cpp` lists every key once with its range and
/// its one-line explanation, and parsing, `--set`, the effective configuration and the key listing all read that list.
namespace ganymede::config {

enum class Dtype { fp32, bf16 };
enum class Recompute { full, selective, none };
enum class ExpertExchange { automatic, uneven };
enum class Schedule { constant, cosine, wsd };
enum class DecayShape { linear, sqrt };
enum class OrthogonaliseWhere { worker, optimizer };
enum class NewtonSchulzForm { standard, gram, automatic };
enum class SkipPolicy { skip, stop, skip_outliers };
enum class Router { sigmoid };
enum class ReplicaState { replicated, sharded };
enum class ParameterWire { fp32, bf16, fp8 };
enum class GradientWire : std::uint8_t { fp32_reduce_scatter, fp32_all_to_all, bf16_all_to_all };
enum class CollectiveBackend { automatic, shm, gloo };
enum class Reshard : std::uint8_t { world, node };
enum class RopeCache { shared, per_layer };
enum class MicroBatchReduce { step, each };

struct Run {
  std::string name = "run";
  std::uint64_t seed = 1;
  std::int64_t steps = 100;
  std::vector<std::string> skip_steps;  // "120-135", "400": what their batches teach is left out (step_ranges.h)
};

struct Parallel {
  int ranks = 1;         // cells in the world
  int expert_group = 1;  // ranks that split the experts between them
  int replicas = 1;      // data-parallel copies of the sharded model
};

struct Replicas {
  ReplicaState state = ReplicaState::replicated;
};

struct Topology {
  int ranks_per_node = 0;   // 0: all ranks on this node
  std::string interface;    // network interface between nodes; empty: the one that leads to node 0
  bool bind_memory = true;  // shared memory of a rank lies on the NUMA nodes of its cores
};

struct Model {
  int vocabulary = 256;
  int hidden = 64;
  int layers = 2;
  int heads = 4;
  int kv_heads_global = 1;   // key/value heads of global layers
  int kv_heads_sliding = 2;  // key/value heads of sliding-window layers
  int qk_dim = 24;
  int v_dim = 16;
  double rotary_fraction = 0.334;  // of qk_dim; the rotated part is int(qk_dim * fraction) rounded down to even
  double rope_theta_global = 5e6;
  double rope_theta_sliding = 1e4;
  double value_scale = 0.707;
  int window = 128;      // tokens a sliding-window layer sees, itself included
  int global_every = 6;  // layer i is global when i == 0 or (i + 1) % global_every == 0; 1: all are global
  bool sinks = true;     // one sink logit per head in sliding-window layers
  int dense_layers = 1;  // the first layers have a dense feed-forward network
  int ffn = 128;         // hidden size of a dense feed-forward network
  int experts = 8;       // 0: every layer is dense
  int top_k = 2;
  int router_groups = 1;  // groups of experts of which each token visits equally many
  int expert_ffn = 32;    // hidden size of one expert
  Router router = Router::sigmoid;
  double router_scale = 1.0;       // factor on the normalised weights of the chosen experts
  double bias_update_rate = 1e-3;  // step of the selection bias towards balance
  double norm_eps = 1e-5;
  double init_std = 0.02;  // normal, truncated at 3 deviations
};

struct Data {
  std::string path;                               // a packed dataset (folder)
  std::vector<std::string> sources;               // packed into `path` on first use
  std::vector<std::string> extensions = {".py"};  // files taken from source trees
  std::int64_t max_bytes = 0;                     // of text taken from the sources, whole documents; 0: all
  std::string tokenizer = "bytes";                // "bytes", a SentencePiece model file, or "train:VOCABULARY"
  int seq_len = 256;
  int rows_per_step = 4;
  double validation_fraction = 0.02;  // of documents, chosen by a hash of their text
  int slots = 4;                      // batches prepared ahead
  int balance_group = 1;              // rows are taken from groups of rows_per_step * balance_group of like cost
};

using HyperParameters = std::map<std::string, double>;

/// Parameters that are updated otherwise than `optimizer` says: [optimizer.group.NAME].
struct OptimizerGroup {
  std::vector<std::string> match;  // names of parameters; * and ? stand for any text and any letter
  std::string optimizer;           // plugin; empty: optimizer.name
  double lr = -1;                  // -1: optimizer.lr
  double weight_decay = -1;        // -1: optimizer.weight_decay, on matrices
};

using OptimizerGroups = std::map<std::string, OptimizerGroup>;  // by name

/// The group of what no other group names and optimizer.name does not update; it has no `match`, and adamw unless it
/// names another.
constexpr const char* rest_group = "rest";
constexpr std::size_t most_groups = 7;

struct Optimizer {
  std::string name = "adamw";
  std::string plugin_folder;  // where `<name>.so` lies; empty: "plugins" beside the programs
  double lr = 1e-3;
  double min_lr_ratio = 0.1;  // the schedule ends at lr * min_lr_ratio
  Schedule schedule = Schedule::cosine;
  std::int64_t warmup_steps = 10;
  std::int64_t decay_steps = 0;  // cosine: length of the schedule, 0: run.steps; wsd: of the decay, 0: a tenth of them
  DecayShape decay_shape = DecayShape::linear;  // of wsd
  double weight_decay = 0.1;
  double clip_norm = 1.0;  // 0: no clipping
  SkipPolicy policy = SkipPolicy::skip;
  double outlier_z = 6;       // standard deviations above the mean, of loss or gradient norm
  int outlier_window = 128;   // applied steps that the mean is over
  int stop_after_skips = 10;  // skipped steps in a row that end the run; 0: never
  int threads = 0;            // 0: chosen from the cores of the cell
  /// What [optimizer.NAME] has for plugin NAME: "adamw.beta1" → 0.9. Which keys a plugin takes, with ranges and
  /// defaults, is in its table of hyper-parameters; a run's effective configuration has all of its plugin's.
  HyperParameters hyper;
  OptimizerGroups groups;
};

/// How a running job gets another optimizer (`ganymede ctl RUN swap-optimizer`).
struct Swap {
  std::int64_t warm_steps = -1;  // that it follows before it takes over; -1: as its slots that start empty need
};

/// How optimizers of whole matrices (Muon) have them orthogonalised.
struct NewtonSchulz {
  OrthogonaliseWhere where = OrthogonaliseWhere::worker;
  std::string coefficients = "kj5";  // a name, or triples "a,b,c; a,b,c"
  NewtonSchulzForm form = NewtonSchulzForm::automatic;
  Dtype dtype = Dtype::fp32;  // of the iteration; the norm is fp32 in any case
};

struct Compute {
  Dtype dtype = Dtype::fp32;
  int threads = 0;  // 0: cores / ranks of this node
  bool deterministic = true;
  int loss_chunk = 512;  // tokens whose logits are held at once
};

struct Offload {
  double fraction = 0.0;  // share of saved layer inputs that lives in the arena
};

struct Wire {
  ParameterWire dense_gather = ParameterWire::fp32;   // format on the wire and of the working copy; never fp8
  ParameterWire expert_gather = ParameterWire::fp32;  // the same of experts
  GradientWire dense_gradients = GradientWire::fp32_all_to_all;
  GradientWire expert_gradients = GradientWire::fp32_all_to_all;
};

struct Dense {
  Reshard reshard = Reshard::world;  // from whom a dense bucket that was gathered once in a step is gathered again
};

struct MicroBatch {
  int rows = 0;                                      // rows of a rank that one gather serves; 0: all of a step
  MicroBatchReduce reduce = MicroBatchReduce::step;  // when gradients are summed over ranks
};

/// Most thread blocks (CTAs) that a communicator takes of its device, by what it carries; 0: what its backend takes.
struct MaxCtas {
  int gather = 0, regather = 0, reduce = 0, replicas = 0, exchange = 0, matrices = 0;
};

struct Collectives {
  CollectiveBackend backend = CollectiveBackend::automatic;  // automatic: shm inside a node, gloo between nodes
  MaxCtas max_ctas;
};

struct Checkpoint {
  std::int64_t every_steps = 0;  // 0: at the end only
  int keep_last = 2;
  double side_fraction = 0.1;  // side buffer for before-images, as a share of master and state
};

struct Validation {
  std::int64_t every_steps = 0;  // 0: never
  int rows = 32;                 // rows of the held-out part
};

struct Sample {
  std::string prompt;  // text continued at the end of the run; empty: none
  int tokens = 200;
  double temperature = 0.8;
};

/// A world that goes on without a node that is lost.
struct Elastic {
  int min_ranks = 0;    // it forms again with the nodes that remain while they hold so many; 0: with all ranks only
  int spare_nodes = 0;  // nodes at the end of --nodes that wait to take the place of one that is lost
  bool wanted() const { return min_ranks > 0 || spare_nodes > 0; }
};

struct Check {
  bool measure_operations = false;  // operations run one at a time; durations go to operations.<rank>.json
  std::int64_t replay_every = 0;    // steps; their gradients are computed twice and compared bit by bit; 0: never
};

struct Launch {
  int restart_budget = 5;  // restarts of one service within restart_window_seconds
  double restart_window_seconds = 600;
  double heartbeat_timeout_seconds = 30;
  double stall_seconds = 5;  // a process that is stopped, or stands still in an operation that takes a tenth of that
  double collective_timeout_seconds = 120;
  double stop_timeout_seconds = 60;
  double node_start_seconds = 600;   // of several nodes: until every one has come
  double node_timeout_seconds = 60;  // until a node that does not answer is lost
  double end_margin_seconds = 30;    // kept between the run's own end and that of its batch job
  std::string wrap_worker;           // e.g. "gdb --args"
  double host_memory_limit_gib = 0;  // per node; 0: what the machine has free
};

struct Config {
  Run run;
  Parallel parallel;
  Replicas replicas;
  Topology topology;
  Model model;
  Data data;
  Optimizer optimizer;
  Swap swap;
  NewtonSchulz newton_schulz;
  Compute compute;
  ExpertExchange expert_exchange = ExpertExchange::automatic;  // automatic: even where model.router_groups allows it
  Recompute recompute = Recompute::full;
  bool keep_gathered = false;            // parameters are kept from their first use in a step to the last
  bool reuse_embedding = true;           // the embedding is not gathered again for backward
  bool norm_in_backward = true;          // squares of gradients are summed as each bucket is reduced
  bool early_release = true;             // parameters are given back when their layer is done
  bool gather_on_compute_lane = false;   // gathers take turns with computation, when their layer is due
  bool reduce_into_compute_pool = true;  // reductions share the memory of computation
  RopeCache rope_cache = RopeCache::shared;
  bool stream_update = true;  // a bucket is gathered as soon as it is updated
  Offload offload;
  Wire wire;
  Dense dense;
  MicroBatch micro_batch;
  Collectives collectives;
  Checkpoint checkpoint;
  Validation validation;
  Sample sample;
  Check check;
  Elastic elastic;
  Launch launch;
};

/// Reads `file` and applies `settings` ("a.b=value", in order), then checks ranges and what keys demand of one
/// another (heads by kv heads, rows_per_step by ranks with the nearest that fits, …).
/// Throws Error(usage) with file, line, key, the value and the way out (for an unknown key: the nearest known one).
Config load(const std::string& file, const std::vector<std::string>& settings);

/// The whole configuration as TOML, every key with its explanation; `load` of it gives the same Config.
std::string effective(const Config& config);

/// Plugins of a run: `optimizer.name`, then those that only groups name, by name.
std::vector<std::string> optimizers_of(const Optimizer& optimizer);

/// Values of the hyper-parameters of the run's plugins, in the order of "PLUGIN.KEY".
std::vector<double> hyper_values(const Optimizer& optimizer);
/// Names of these.
std::vector<std::string> hyper_names(const Optimizer& optimizer);

/// One key for the listing that the command line prints.
struct FieldHelp {
  std::string key;       // "model.hidden"
  std::string type;      // "whole number", "number", "true or false", "text", "list of texts", "choice"
  std::string standard;  // the value when the key is not given, as TOML
  std::string allowed;   // "1 to 65536", "above 0 and up to 1", "fp32 or bf16"; empty: anything of the type
  std::string help;
};
/// Every key, in the order of `effective`.
std::vector<FieldHelp> keys();

}  // namespace ganymede::config
