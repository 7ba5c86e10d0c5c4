#include "launcher/cli/segments_view.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/service/run_directory.h"
#include "common/shm/keeper_client.h"
#include "common/shm/segment.h"

namespace ganymede::cli {
namespace {

using nlohmann::ordered_json;

Deadline soon() { return Deadline::after_seconds(10); }

struct Described {
  shm::HeldSegment held;
  shm::Layout layout;
};

std::vector<Described> describe_all() {
  shm::KeeperClient keeper(service::keeper_socket);
  std::vector<Described> all;
  for (const auto& held : keeper.list(soon())) {
    os::Fd fd = keeper.get(held.name, soon());
    all.push_back({held, shm::Segment::describe(fd.get())});
  }
  return all;
}

const char* name_of(shm::ElementType type) {
  constexpr const char* names[] = {"u8", "i32", "i64", "u64", "f32", "bf16"};
  return names[static_cast<std::size_t>(type)];
}

}  // namespace

std::string segments_text() {
  std::string text;
  for (const auto& segment : describe_all()) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", segment.held.name,
                        human_bytes(static_cast<double>(segment.held.bytes)));
    for (const auto& entry : segment.layout.entries)
      text += fmt::format("\n  {:<22} {:<5} {:<20} at {:>12}, {}", entry.name, name_of(entry.type),
                          fmt::format("[{}]", fmt::join(entry.shape, ", ")), entry.offset,
                          human_bytes(static_cast<double>(entry.bytes())));
  }
  return text;
}

std::string segments_json() {
  auto list = ordered_json::array();
  for (const auto& segment : describe_all()) {
    auto entries = ordered_json::array();
    for (const auto& entry : segment.layout.entries)
      entries.push_back({{"name", entry.name},
                         {"type", name_of(entry.type)},
                         {"shape", entry.shape},
                         {"offset", entry.offset},
                         {"bytes", entry.bytes()}});
    list.push_back({{"name", segment.held.name}, {"bytes", segment.held.bytes}, {"entries", entries}});
  }
  return list.dump();
}

}  // namespace ganymede::cli
