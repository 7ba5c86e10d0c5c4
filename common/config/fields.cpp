#include "common/config/fields.h"

#include <type_traits>

namespace ganymede::config {
namespace {

constexpr Range from(double least, double most = endless) { return {least, most, false}; }
constexpr Range above(double least, double most) { return {least, most, true}; }
constexpr Range share = {0, 1, false};
constexpr Range size = {1, 1 << 24, false};  // of a tensor's side
constexpr Range wait = {1, 604800, false};   // seconds; heartbeats come several times a second, a week is no wait
constexpr Range any = {};

/// `names` in the order of the enumerators.
template <class Enum>
Choice choice(Enum& member, std::vector<std::string> names) {
  static_assert(std::is_enum_v<Enum>);
  return {std::move(names), [&member] { return static_cast<std::size_t>(member); },
          [&member](std::size_t index) { member = static_cast<Enum>(index); }};
}

Choice format(Dtype& member) { return choice(member, {"fp32", "bf16"}); }
Choice gradients(GradientWire& member) {
  return choice(member, {"fp32_reduce_scatter", "fp32_all_to_all", "bf16_all_to_all"});
}

Field ctas(const std::string& name, int& member, const std::string& what) {
  return {"collectives.max_ctas." + name, &member, from(0, 1024),
          "most CTAs that the communicator takes of a GPU that " + what + "; 0: as many as its library likes"};
}

std::vector<Field> plan_fields(Config& c) {
  return {
      {"recompute", choice(c.recompute, {"full", "selective", "none"}), any,
       "what backward computes again: all of a layer; all but its attention; nothing (most memory, fewest operations)"},
      {"keep_gathered", &c.keep_gathered, any, "gathered parameters stay until the last backward of a step"},
      {"reuse_embedding", &c.reuse_embedding, any, "the embedding is not gathered again for backward"},
      {"norm_in_backward", &c.norm_in_backward, any,
       "the gradient norm is summed as buckets are reduced; false: after all of them"},
      {"early_release", &c.early_release, any,
       "gathered parameters go when their layer is done; false: at the end of forward or backward"},
      {"gather_on_compute_lane", &c.gather_on_compute_lane, any,
       "a layer is gathered when it is due: one layer's parameters in memory, no overlap; false: one layer ahead"},
      {"reduce_into_compute_pool", &c.reduce_into_compute_pool, any,
       "gradients under reduction share the pool of computation; false: they have a part of it for themselves"},
      {"rope_cache", choice(c.rope_cache, {"shared", "per_layer"}), any,
       "one table of rotations for all layers of the same base, or one a layer"},
      {"stream_update", &c.stream_update, any,
       "a bucket is gathered once it is updated; false: forward waits until all are"},
      {"expert_exchange", choice(c.expert_exchange, {"auto", "uneven"}), any,
       "tokens go to all ranks of an expert group where model.router_groups says that all need them; or as counted"},
  };
}

std::vector<Field> run_fields(Config& c) {
  return {
      {"run.name", &c.run.name, any, "name in logs and reports; when not given, that of the recipe's file"},
      {"run.seed", &c.run.seed, from(0), "of initial values and of the order of the data"},
      {"run.steps", &c.run.steps, from(1, 1e12), "steps in total"},
      {"run.skip_steps", &c.run.skip_steps, any,
       "steps whose batches are not trained on, such as [\"120-135\", \"400\"]; they count, and change nothing"},
      {"parallel.ranks", &c.parallel.ranks, from(1, 65536), "cells in the world"},
      {"parallel.expert_group", &c.parallel.expert_group, from(1, 1024), "ranks that split the experts between them"},
      {"parallel.replicas", &c.parallel.replicas, from(1, 65536), "data-parallel copies of the sharded model"},
      {"replicas.state", choice(c.replicas.state, {"replicated", "sharded"}), any,
       "each replica holds and updates all of its shard; or its slice, and passes the new working copy on"},
      {"topology.ranks_per_node", &c.topology.ranks_per_node, from(0, 1024), "0: all ranks are on this node"},
      {"topology.interface", &c.topology.interface, any,
       "network interface between nodes; empty: the one that leads to node 0"},
      {"topology.bind_memory", &c.topology.bind_memory, any,
       "bind a rank's shared memory to the NUMA nodes of its cores, where there are several"},
  };
}

std::vector<Field> model_fields(Config& c) {
  Model& m = c.model;
  return {
      {"model.vocabulary", &m.vocabulary, size, "tokens that the model knows; bytes need 256"},
      {"model.hidden", &m.hidden, size, "width of the residual stream"},
      {"model.layers", &m.layers, from(1, 1024), "number of layers"},
      {"model.heads", &m.heads, from(1, 65536), "query heads"},
      {"model.kv_heads_global", &m.kv_heads_global, from(1, 65536), "key/value heads of global layers"},
      {"model.kv_heads_sliding", &m.kv_heads_sliding, from(1, 65536), "key/value heads of sliding-window layers"},
      {"model.qk_dim", &m.qk_dim, from(1, 65536), "size of a query or key head"},
      {"model.v_dim", &m.v_dim, from(1, 65536), "size of a value head"},
      {"model.rotary_fraction", &m.rotary_fraction, share, "part of qk_dim that is rotated, rounded down to even"},
      {"model.rope_theta_global", &m.rope_theta_global, above(0, 1e12), "rotary base of global layers"},
      {"model.rope_theta_sliding", &m.rope_theta_sliding, above(0, 1e12), "rotary base of sliding-window layers"},
      {"model.value_scale", &m.value_scale, above(0, 1e6), "factor on values before attention"},
      {"model.window", &m.window, from(1, 1 << 30), "tokens that a sliding-window layer sees, itself included"},
      {"model.global_every", &m.global_every, from(1, 4096), "layer 0 and every n-th are global; 1: all"},
      {"model.sinks", &m.sinks, any, "one sink logit per head in sliding-window layers"},
      {"model.dense_layers", &m.dense_layers, from(0, 1024), "first layers with a dense feed-forward network"},
      {"model.ffn", &m.ffn, size, "hidden size of a dense feed-forward network"},
      {"model.experts", &m.experts, from(0, 65536), "experts of a layer; 0: every layer is dense"},
      {"model.top_k", &m.top_k, from(1, 1024), "experts that a token visits"},
      {"model.router_groups", &m.router_groups, from(1, 1024),
       "groups of experts; a token visits top_k / groups of each"},
      {"model.expert_ffn", &m.expert_ffn, size, "hidden size of one expert"},
      {"model.router", choice(m.router, {"sigmoid"}), any, "how scores of experts are made"},
      {"model.router_scale", &m.router_scale, above(0, 1e6), "factor on the weights of the chosen experts"},
      {"model.bias_update_rate", &m.bias_update_rate, share, "step of the selection bias towards balance"},
      {"model.norm_eps", &m.norm_eps, above(0, 1), "added to the mean square in norms"},
      {"model.init_std", &m.init_std, above(0, 10), "deviation of initial weights, cut at 3 deviations"},
  };
}

std::vector<Field> data_fields(Config& c) {
  Data& d = c.data;
  return {
      {"data.path", &d.path, any, "a packed dataset (folder)"},
      {"data.sources", &d.sources, any, "files, folders or patterns, packed into data.path on first use"},
      {"data.extensions", &d.extensions, any, "files that are taken from folders"},
      {"data.max_bytes", &d.max_bytes, from(0), "of text taken from the sources, whole documents; 0: all"},
      {"data.tokenizer", &d.tokenizer, any, "bytes, a SentencePiece model file, or train:VOCABULARY"},
      {"data.seq_len", &d.seq_len, from(2, 1 << 24), "tokens of a row"},
      {"data.rows_per_step", &d.rows_per_step, from(1, 1 << 24), "rows of one step, all ranks together"},
      {"data.validation_fraction", &d.validation_fraction, {0, 0.5, false}, "of documents, chosen by their text"},
      {"data.slots", &d.slots, from(1, 64), "batches prepared ahead"},
      {"data.balance_group", &d.balance_group, from(1, 65536), "steps whose rows are shared out by like cost"},
  };
}

std::vector<Field> optimizer_fields(Config& c) {
  Optimizer& o = c.optimizer;
  std::vector<Field> all = {
      {"optimizer.name", &o.name, any, "plugin: NAME.so of the plugin folder; its own keys go into [optimizer.NAME]"},
      {"optimizer.plugin_folder", &o.plugin_folder, any, "empty: `plugins` beside the programs"},
      {"optimizer.lr", &o.lr, from(0, 1e3), "learning rate after the warm-up"},
      {"optimizer.min_lr_ratio", &o.min_lr_ratio, share, "the schedule ends at lr times this"},
      {"optimizer.schedule", choice(o.schedule, {"constant", "cosine", "wsd"}), any,
       "course of the learning rate after the warm-up; wsd: constant, then a decay that ends with the run"},
      {"optimizer.warmup_steps", &o.warmup_steps, from(0, 1e12), "steps in which the learning rate rises from 0"},
      {"optimizer.decay_steps", &o.decay_steps, from(0, 1e12),
       "cosine: length of the schedule, 0: run.steps; wsd: length of the decay, 0: a tenth of run.steps"},
      {"optimizer.decay_shape", choice(o.decay_shape, {"linear", "sqrt"}), any,
       "of wsd: 1 - x or 1 - sqrt(x), x the share of the decay that is over"},
      {"optimizer.weight_decay", &o.weight_decay, from(0, 1e3), "decoupled, on matrices"},
      {"optimizer.clip_norm", &o.clip_norm, from(0, 1e9), "gradients are scaled down to this norm; 0: never"},
      {"optimizer.policy", choice(o.policy, {"skip", "stop", "skip_outliers"}), any,
       "a step with a loss or gradient that is not finite is skipped, or ends the run; skip_outliers: outliers as "
       "well"},
      {"optimizer.outlier_z",
       &o.outlier_z,
       {0, 1e6, true},
       "outlier: loss or gradient norm lies so many standard deviations above the mean of the steps before"},
      {"optimizer.outlier_window", &o.outlier_window, from(8, 1e6),
       "applied steps that this mean is over; there are no outliers before half of them"},
      {"optimizer.stop_after_skips", &o.stop_after_skips, from(0, 1e6),
       "a run ends after so many skipped steps in a row; 0: never"},
      {"optimizer.threads", &o.threads, from(0, 1024), "of one optimizer server; 0: from the cores of its cell"},
  };
  for (auto& [name, value] : o.hyper) all.push_back(hyper_field(name, value));
  for (auto& [name, group] : o.groups) {
    for (Field& field : group_fields(name, group)) all.push_back(std::move(field));
  }
  return all;
}

std::vector<Field> newton_schulz_fields(Config& c) {
  NewtonSchulz& n = c.newton_schulz;
  return {
      {"swap.warm_steps", &c.swap.warm_steps, from(-1, 1e9),
       "updates that another optimizer follows before it takes over; -1: as its slots that start empty need"},
      {"newton_schulz.where", choice(n.where, {"worker", "optimizer"}), any,
       "who orthogonalises matrices: the worker (libtorch), or the optimizer server (CBLAS, fp32)"},
      {"newton_schulz.coefficients", &n.coefficients, any,
       "kj5, quintic5, polar_express5, cans5, cubic5, ten_step, or a list \"a,b,c; a,b,c\", a triple a step"},
      {"newton_schulz.form", choice(n.form, {"standard", "gram", "automatic"}), any,
       "multiplies the matrix in each step, or the square of its smaller side; automatic: the cheaper"},
      {"newton_schulz.dtype", format(n.dtype), any, "of the iteration"},
  };
}

std::vector<Field> compute_fields(Config& c) {
  return {
      {"compute.dtype", format(c.compute.dtype), any, "format of matrix products"},
      {"compute.threads", &c.compute.threads, from(0, 1024), "of one worker; 0: cores / ranks of this node"},
      {"compute.deterministic", &c.compute.deterministic, any, "the same bits in every run"},
      {"compute.loss_chunk", &c.compute.loss_chunk, from(1, 1 << 24), "tokens whose logits are held at once"},
      {"offload.fraction", &c.offload.fraction, share, "of saved layer inputs, kept in host memory (the arena)"},
      {"wire.dense_gather", choice(c.wire.dense_gather, {"fp32", "bf16"}), any,
       "format of dense parameters on the wire and of their working copy: that of compute.dtype"},
      {"wire.expert_gather", choice(c.wire.expert_gather, {"fp32", "bf16", "fp8"}), any,
       "the same of experts: that of compute.dtype, or fp8 (E4M3 in blocks of 128) with either"},
      {"wire.dense_gradients", gradients(c.wire.dense_gradients), any, "how gradients of dense parameters are summed"},
      {"wire.expert_gradients", gradients(c.wire.expert_gradients), any,
       "the same of experts; all_to_all: in rank order at the receiver, reduce_scatter: first inside each node"},
      {"dense.reshard", choice(c.dense.reshard, {"world", "node"}), any,
       "who has a dense bucket for its next gather in a step: the world, or each node, a share a rank"},
      {"micro_batch.rows", &c.micro_batch.rows, from(0, 1 << 24),
       "rows of a rank from forward to backward that one gather serves; 0: all of a step"},
      {"micro_batch.reduce", choice(c.micro_batch.reduce, {"step", "each"}), any,
       "gradients are summed over ranks once a step; or of each micro-batch, so that none stays whole in memory"},
      {"collectives.backend", choice(c.collectives.backend, {"auto", "shm", "gloo"}), any,
       "auto: shared memory inside a node, gloo between nodes"},
      ctas("gather", c.collectives.max_ctas.gather, "brings parameters together"),
      ctas("regather", c.collectives.max_ctas.regather, "does so inside a node (dense.reshard = node)"),
      ctas("reduce", c.collectives.max_ctas.reduce, "sums gradients"),
      ctas("replicas", c.collectives.max_ctas.replicas, "sums gradients over replicas"),
      ctas("exchange", c.collectives.max_ctas.exchange, "carries tokens to experts and back"),
      ctas("matrices", c.collectives.max_ctas.matrices, "carries rows of matrices to who orthogonalises them"),
  };
}

std::vector<Field> output_fields(Config& c) {
  return {
      {"checkpoint.every_steps", &c.checkpoint.every_steps, from(0, 1e12), "0: at the end only"},
      {"checkpoint.keep_last", &c.checkpoint.keep_last, from(1, 1e6), "older ones go when a newer one is complete"},
      {"checkpoint.side_fraction", &c.checkpoint.side_fraction, share, "buffer for before-images / master and state"},
      {"validation.every_steps", &c.validation.every_steps, from(0, 1e12), "0: never"},
      {"validation.rows", &c.validation.rows, from(1, 1 << 24),
       "rows of the held-out part; all of it where that is less"},
      {"sample.prompt", &c.sample.prompt, any, "text that is continued at the end of the run; empty: none"},
      {"sample.tokens", &c.sample.tokens, from(1, 100000), "length of the sample"},
      {"sample.temperature", &c.sample.temperature, from(0, 100), "0: always the likeliest token"},
      {"check.measure_operations", &c.check.measure_operations, any,
       "run operations one at a time, write their durations to operations.RANK.json for `ganymede plan --measured`"},
      {"check.replay_every", &c.check.replay_every, from(0, 1e12),
       "every so many steps the gradients are computed twice; a rank that has others the second time ends the run; 0: "
       "never"},
  };
}

std::vector<Field> launch_fields(Config& c) {
  Launch& l = c.launch;
  return {
      {"elastic.min_ranks", &c.elastic.min_ranks, from(0, 1 << 20),
       "without a lost node the world forms again with so many ranks or more; 0: with all of them only"},
      {"elastic.spare_nodes", &c.elastic.spare_nodes, from(0, 1 << 20),
       "nodes at the end of --nodes that wait to take the place of a lost one"},
      {"launch.restart_budget", &l.restart_budget, from(0, 1e6), "restarts of one service within the window"},
      {"launch.restart_window_seconds", &l.restart_window_seconds, above(0, 1e7), "window of the restart budget"},
      {"launch.heartbeat_timeout_seconds", &l.heartbeat_timeout_seconds, wait, "silence that is a fault"},
      {"launch.stall_seconds", &l.stall_seconds, wait,
       "a process that is stopped this long is replaced; so is one that stands still this long, and ten times as long "
       "as the operation usually takes"},
      {"launch.collective_timeout_seconds", &l.collective_timeout_seconds, wait, "wait for other ranks"},
      {"launch.stop_timeout_seconds", &l.stop_timeout_seconds, wait, "wait for a service to end"},
      {"launch.node_start_seconds", &l.node_start_seconds, wait, "of several nodes: until every one has come"},
      {"launch.node_timeout_seconds", &l.node_timeout_seconds, wait, "silence after which a node is lost"},
      {"launch.end_margin_seconds", &l.end_margin_seconds, from(0, 1e6), "time to spare before SLURM_JOB_END_TIME"},
      {"launch.wrap_worker", &l.wrap_worker, any, "put before the worker's command, e.g. \"gdb --args\""},
      {"launch.host_memory_limit_gib", &l.host_memory_limit_gib, from(0, 1e9), "per node; 0: what is free"},
  };
}

}  // namespace

std::vector<Field> fields(Config& config) {
  std::vector<Field> all;
  for (auto part : {plan_fields, run_fields, model_fields, data_fields, optimizer_fields, newton_schulz_fields,
                    compute_fields, output_fields, launch_fields}) {
    for (auto& field : part(config)) all.push_back(std::move(field));
  }
  return all;
}

std::string section_of(const std::string& key) {
  auto dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string name_of(const std::string& key) {
  auto dot = key.rfind('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

}  // namespace ganymede::config
