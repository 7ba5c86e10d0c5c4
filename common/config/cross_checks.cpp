#include "common/config/cross_checks.h"

#include <algorithm>
#include <charconv>

#include "common/base/error.h"
#include "common/config/field.h"
#include "common/config/step_ranges.h"

namespace ganymede::config {
namespace {

/// The multiple of `unit` nearest to `value`, at least one unit; the smaller of two that are equally near.
std::int64_t nearest_multiple(std::int64_t value, std::int64_t unit) {
  std::int64_t below = value / unit * unit;
  bool up = below == 0 || (value - below) * 2 > unit;
  return up ? below + unit : below;
}

/// The divisor of `whole` that is nearest to `part`; the smaller of two that are equally near.
int nearest_divisor(int part, int whole) {
  for (int distance = 1;; distance++) {
    if (part > distance && whole % (part - distance) == 0) return part - distance;
    if (whole % (part + distance) == 0) return part + distance;
  }
}

/// Fails unless `part` divides `whole`.
void divides(const std::string& part_key, int part, const std::string& whole_key, int whole, const Origin& origin) {
  if (whole % part == 0) return;
  fail_usage("{}: key '{}' is {}, which does not divide '{}' = {}; the nearest that does is {}.", origin(part_key),
             part_key, part, whole_key, whole, nearest_divisor(part, whole));
}

void check_parallel(const Config& c, const Origin& origin) {
  const auto& p = c.parallel;
  if (p.replicas == 1) {
    divides("parallel.expert_group", p.expert_group, "parallel.ranks", p.ranks, origin);
  } else if (std::int64_t unit = std::int64_t{p.replicas} * p.expert_group; p.ranks % unit != 0) {
    fail_usage(
        "{}: key 'parallel.replicas' is {}; times parallel.expert_group = {} it has to divide 'parallel.ranks' = {}: "
        "the nearest number of ranks that fits is {}.",
        origin("parallel.replicas"), p.replicas, p.expert_group, p.ranks, nearest_multiple(p.ranks, unit));
  }
  int per_node = c.topology.ranks_per_node;
  if (per_node == 0 || per_node >= p.ranks) return;
  divides("parallel.expert_group", p.expert_group, "topology.ranks_per_node", per_node, origin);
  if (c.collectives.backend == CollectiveBackend::shm) {
    fail_usage(
        "{}: key 'collectives.backend' is \"shm\", but topology.ranks_per_node = {} puts the {} ranks on several "
        "nodes, "
        "which share no memory: make it \"auto\".",
        origin("collectives.backend"), per_node, p.ranks);
  }
}

void check_elastic(const Config& c, const Origin& origin) {
  if (c.elastic.min_ranks <= c.parallel.ranks) return;
  fail_usage("{}: key 'elastic.min_ranks' is {}, more than the {} ranks of the run (parallel.ranks).",
             origin("elastic.min_ranks"), c.elastic.min_ranks, c.parallel.ranks);
}

void check_attention(const Config& c, const Origin& origin) {
  const auto& m = c.model;
  divides("model.kv_heads_global", m.kv_heads_global, "model.heads", m.heads, origin);
  divides("model.kv_heads_sliding", m.kv_heads_sliding, "model.heads", m.heads, origin);
  int rotated = static_cast<int>(m.qk_dim * m.rotary_fraction) / 2 * 2;
  if (m.rotary_fraction > 0 && rotated < 2) {
    fail_usage(
        "{}: key 'model.rotary_fraction' is {}, which rotates no pair of the {} dimensions of a head; make it 0 for "
        "none, or at least 2 / model.qk_dim.",
        origin("model.rotary_fraction"), m.rotary_fraction, m.qk_dim);
  }
}

void check_experts(const Config& c, const Origin& origin) {
  const auto& m = c.model;
  if (m.dense_layers > m.layers) {
    fail_usage("{}: key 'model.dense_layers' is {}, more than the {} layers of the model.",
               origin("model.dense_layers"), m.dense_layers, m.layers);
  }
  if (m.experts == 0) {
    if (m.router_groups > 1) {
      fail_usage("{}: key 'model.router_groups' is {}, but the model has no experts: leave it at 1.",
                 origin("model.router_groups"), m.router_groups);
    }
    if (c.parallel.expert_group == 1) return;
    fail_usage("{}: key 'parallel.expert_group' is {}, but the model has no experts: leave it at 1.",
               origin("parallel.expert_group"), c.parallel.expert_group);
  }
  if (m.top_k > m.experts) {
    fail_usage("{}: key 'model.top_k' is {}, more than the {} experts of a layer.", origin("model.top_k"), m.top_k,
               m.experts);
  }
  divides("model.router_groups", m.router_groups, "model.experts", m.experts, origin);
  divides("model.router_groups", m.router_groups, "model.top_k", m.top_k, origin);
  if (c.parallel.expert_group > m.experts) {
    fail_usage("{}: key 'parallel.expert_group' is {}, more than the {} experts of a layer; make it {} or less.",
               origin("parallel.expert_group"), c.parallel.expert_group, m.experts, m.experts);
  }
}

/// The vocabulary that "train:N" asks for.
int trained_vocabulary(const std::string& tokenizer, const Origin& origin) {
  std::string_view digits = std::string_view(tokenizer).substr(6);
  int size = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error == std::errc() && end == digits.data() + digits.size() && size >= 300 && size <= 1'000'000) return size;
  fail_usage("{}: key 'data.tokenizer' is \"{}\"; after 'train:' comes the size of the vocabulary, 300 to 1000000.",
             origin("data.tokenizer"), tokenizer);
}

void check_data(const Config& c, const Origin& origin) {
  const auto& d = c.data;
  if (d.rows_per_step % c.parallel.ranks != 0) {
    fail_usage("{}: key 'data.rows_per_step' is {}, which {} ranks cannot share evenly; the nearest that fits is {}.",
               origin("data.rows_per_step"), d.rows_per_step, c.parallel.ranks,
               nearest_multiple(d.rows_per_step, c.parallel.ranks));
  }
  if (d.tokenizer.empty()) {
    fail_usage("{}: key 'data.tokenizer' is empty; \"bytes\" needs no file.", origin("data.tokenizer"));
  }
  if (d.tokenizer == "bytes" && c.model.vocabulary < 256) {
    fail_usage("{}: key 'model.vocabulary' is {}, but the tokenizer \"bytes\" has 256 tokens.",
               origin("model.vocabulary"), c.model.vocabulary);
  }
  if (!d.tokenizer.starts_with("train:")) return;
  int size = trained_vocabulary(d.tokenizer, origin);
  if (size > c.model.vocabulary) {
    fail_usage("{}: key 'model.vocabulary' is {}, but data.tokenizer = \"{}\" makes {} tokens.",
               origin("model.vocabulary"), c.model.vocabulary, d.tokenizer, size);
  }
}

void check_steps(const Config& c, const Origin& origin) {
  const auto& o = c.optimizer;
  if (o.schedule == Schedule::wsd) {
    if (o.warmup_steps + o.decay_steps <= c.run.steps) return;
    fail_usage(
        "{}: key 'optimizer.warmup_steps' is {} and 'optimizer.decay_steps' {}: together more than the {} steps "
        "of the run (run.steps).",
        origin("optimizer.warmup_steps"), o.warmup_steps, o.decay_steps, c.run.steps);
  }
  std::int64_t length = o.decay_steps > 0 ? o.decay_steps : c.run.steps;
  if (o.warmup_steps <= length) return;
  fail_usage("{}: key 'optimizer.warmup_steps' is {}, more than the {} steps of the schedule ({}).",
             origin("optimizer.warmup_steps"), o.warmup_steps, length,
             o.decay_steps > 0 ? "optimizer.decay_steps" : "run.steps");
}

/// Parameters are computed with as they are gathered; only fp8 is decoded, into either compute type.
void check_skipped_steps(const Config& c, const Origin& origin) {
  for (const std::string& text : c.run.skip_steps) {
    if (read_step_range(text)) continue;
    fail_usage(
        "{}: key 'run.skip_steps' has {}, which is neither a step such as \"400\" nor steps such as \"120-135\", from "
        "1 on and the smaller first.",
        origin("run.skip_steps"), toml_text(text));
  }
}

void check_formats(const Config& c, const Origin& origin) {
  bool bf16 = c.compute.dtype == Dtype::bf16;
  ParameterWire other = bf16 ? ParameterWire::fp32 : ParameterWire::bf16;
  if (c.wire.dense_gather == other && c.wire.expert_gather == other) {
    const char *computed = bf16 ? "bf16" : "fp32", *gathered = bf16 ? "fp32" : "bf16";
    fail_usage(
        "{}: key 'compute.dtype' is \"{}\", but wire.dense_gather and wire.expert_gather are \"{}\": set both to "
        "\"{}\" as well (or wire.expert_gather to \"fp8\").",
        origin("compute.dtype"), computed, gathered, computed);
  }
  auto check = [&](const std::string& key, ParameterWire wire, const char* or_else) {
    if (wire == ParameterWire::fp8 || (wire == ParameterWire::bf16) == bf16) return;
    const char *computed = bf16 ? "bf16" : "fp32", *gathered = bf16 ? "fp32" : "bf16";
    fail_usage("{}: key '{}' is \"{}\", but compute.dtype is \"{}\"; they have to be the same{}.", origin(key), key,
               gathered, computed, or_else);
  };
  check("wire.dense_gather", c.wire.dense_gather, "");
  check("wire.expert_gather", c.wire.expert_gather, ", or this one \"fp8\"");
}

void check_names(const Config& c, const Origin& origin) {
  auto check = [&](const std::string& key, const std::string& name) {
    bool printable =
        std::none_of(name.begin(), name.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; });
    if (printable && !name.empty() && name.find('/') == std::string::npos && name.front() != '.') return;
    fail_usage(
        "{}: key '{}' is {}, which is not a name: no '/', no '.' at its start, no line ends or other control "
        "characters, not empty.",
        origin(key), key, toml_text(name));
  };
  check("run.name", c.run.name);
  for (const std::string& name : optimizers_of(c.optimizer)) check("optimizer.name", name);
}

void check_groups(const Config& c, const Origin& origin) {
  for (const auto& [name, group] : c.optimizer.groups) {
    if (group.optimizer.empty() && name == rest_group)
      fail_usage("{}: key 'optimizer.group.rest.optimizer' is empty: it names who updates what {} does not.",
                 origin("optimizer.group.rest.optimizer"), c.optimizer.name);
    for (const auto& [key, value] : {std::pair("lr", group.lr), std::pair("weight_decay", group.weight_decay)}) {
      if (value >= 0 || value == -1) continue;
      std::string whole = "optimizer.group." + name + "." + key;
      fail_usage("{}: key '{}' is {}, but has to be 0 or more, or -1 for what [optimizer] has.", origin(whole), whole,
                 value);
    }
    if (!group.match.empty() || name == rest_group) continue;
    std::string key = "optimizer.group." + name + ".match";
    fail_usage("{}: key '{}' is missing: it says which parameters are in the group, for example [\"*.bias\"].",
               origin(key), key);
  }
  if (c.optimizer.groups.size() <= most_groups) return;
  fail_usage("{}: there are {} groups [optimizer.group.NAME]; at most {} are possible.",
             origin("optimizer.group." + c.optimizer.groups.begin()->first + ".match"), c.optimizer.groups.size(),
             most_groups);
}

}  // namespace

void cross_check(const Config& config, const Origin& origin) {
  for (auto check : {check_names, check_parallel, check_elastic, check_attention, check_experts, check_data,
                     check_sizes, check_steps, check_skipped_steps, check_formats, check_groups}) {
    check(config, origin);
  }
}

}  // namespace ganymede::config
