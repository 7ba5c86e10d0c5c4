#include "launcher/cli/segments_view.h"

#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include "common/os/numa.h"
#include "common/placement/placement.h"
#include "common/service/run_directory.h"
#include "common/shm/keeper_client.h"
#include "common/shm/segment.h"
#include "common/wire/bucket_form.h"
#include "launcher/cli/table.h"

namespace ganymede::cli {
namespace {

using nlohmann::ordered_json;

Deadline soon() { return Deadline::after_seconds(10); }

struct Described {
  shm::HeldSegment held;
  shm::Layout layout;
  std::vector<int> nodes;  // NUMA
};

std::vector<Described> describe_all() {
  shm::KeeperClient keeper(service::keeper_socket);
  std::vector<Described> all;
  for (const auto& held : keeper.list(soon())) {
    try {
      os::Fd fd = keeper.get(held.name, soon());
      shm::Layout layout = shm::Segment::describe(fd.get());
      all.push_back({held, layout, os::nodes_of_memory(fd.get(), layout.size)});
    } catch (const Error& error) {
      fail("The run is starting or ending: segment {} is being made or given back. Ask again in a moment. ({})",
           held.name, error.what());
    }
  }
  return all;
}

/// What a segment is for, by its name ("rank.0/master", "rank.0/state.0").
std::string purpose(const std::string& name) {
  static const std::map<std::string, std::string> purposes = {
      {"control", "counters of the step protocol, the decision record, what the services do"},
      {"master", "fp32 parameters of this rank"},
      {"working", "parameters in the format in which they are gathered"},
      {"state", "the optimizer's state, and the tiles being updated (redo)"},
      {"gradients", "fp32 gradients of this rank"},
      {"arena", "inputs of layers, moved out of the worker (offload.fraction)"},
      {"exchange", "channels of the ranks of this node for collectives"},
      {"pool", "the worker's pool, which other ranks of this node read"},
      {"batches", "rows of the next steps, and of validation"},
      {"side", "what an update overwrites before a checkpoint has read it"},
      {"matrices", "what of matrices is orthogonalised, and what came of it"}};
  std::string own = name.substr(name.rfind('/') + 1);
  std::size_t dot = own.find('.');
  auto found = purposes.find(own.substr(0, dot));
  if (found == purposes.end() || dot == std::string::npos) return found == purposes.end() ? "" : found->second;
  return fmt::format("{}; of state epoch {}", found->second, own.substr(dot + 1));
}

/// A bucket's part of a segment.
struct Part {
  std::string bucket;
  std::uint64_t offset = 0, bytes = 0;  // in the segment
};

/// What "values" of master and working hold, by the configuration of the run; nothing for other segments.
/// "rank.3/master".
std::vector<Part> parts_of(const Described& segment, const config::Config& config) {
  const std::string& name = segment.held.name;
  auto slash = name.find('/');
  int rank = 0;
  auto read = std::from_chars(name.data() + std::min<std::size_t>(5, name.size()), name.data() + name.size(), rank);
  bool working = name.ends_with("/working"), known = working || name.ends_with("/master");
  if (!known || !name.starts_with("rank.") || read.ptr != name.data() + slash || rank >= config.parallel.ranks)
    return {};
  placement::Placement placement = placement::build(config, rank);
  wire::WorkingForm form = wire::working_form(config, placement);
  std::uint64_t begin = segment.layout.entry("values").offset;
  std::vector<Part> parts;
  for (std::size_t i = 0; i < placement.buckets.size(); ++i) {
    const placement::Bucket& bucket = placement.buckets[i];
    auto offset = working ? form.offset[i] : bucket.shard_offset * 4;
    auto size = working ? form.buckets[i].shard_bytes() : bucket.shard_elements() * 4;
    parts.push_back({bucket.name, begin + static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size)});
  }
  return parts;
}

std::string bytes(std::uint64_t count) { return human_bytes(static_cast<double>(count)); }

const char* name_of(shm::ElementType type) {
  constexpr const char* names[] = {"u8", "i32", "i64", "u64", "f32", "bf16", "f64"};
  return names[static_cast<std::size_t>(type)];
}

}  // namespace

std::string segments_text() {
  Table segments("lrll"), entries("lllrrl");
  segments.add({"segment", "size", "NUMA", "holds"});
  entries.add({"tensor", "type", "shape", "at byte", "size", "of segment"});
  auto all = describe_all();
  if (all.empty()) return "no shared memory yet: the run is being made ready";
  config::Config config = config::load(service::config_file, {});
  for (const auto& segment : all) {
    std::string nodes = segment.nodes.empty() ? "?" : fmt::format("{}", fmt::join(segment.nodes, ","));
    segments.add({segment.held.name, bytes(segment.held.bytes), nodes, purpose(segment.held.name)});
    for (const auto& entry : segment.layout.entries)
      entries.add({entry.name, name_of(entry.type), fmt::format("[{}]", fmt::join(entry.shape, ", ")),
                   with_commas(static_cast<std::int64_t>(entry.offset)), bytes(entry.bytes()), segment.held.name});
    for (const Part& part : parts_of(segment, config))
      entries.add({"  " + part.bucket, "", "", with_commas(static_cast<std::int64_t>(part.offset)), bytes(part.bytes),
                   segment.held.name});
  }
  std::string text = segments.text() + "\n" + entries.text();
  text.pop_back();  // the last newline
  return text;
}

std::string segments_json() {
  auto list = ordered_json::array();
  auto all = describe_all();
  config::Config config = all.empty() ? config::Config() : config::load(service::config_file, {});
  for (const auto& segment : all) {
    auto entries = ordered_json::array();
    for (const auto& entry : segment.layout.entries)
      entries.push_back({{"name", entry.name},
                         {"type", name_of(entry.type)},
                         {"shape", entry.shape},
                         {"offset", entry.offset},
                         {"bytes", entry.bytes()}});
    auto buckets = ordered_json::array();
    for (const Part& part : parts_of(segment, config))
      buckets.push_back({{"name", part.bucket}, {"offset", part.offset}, {"bytes", part.bytes}});
    list.push_back({{"name", segment.held.name},
                    {"bytes", segment.held.bytes},
                    {"holds", purpose(segment.held.name)},
                    {"numa_nodes", segment.nodes},
                    {"entries", entries},
                    {"buckets", buckets}});
  }
  return list.dump();
}

}  // namespace ganymede::cli
