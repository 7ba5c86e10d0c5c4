#include "launcher/supervisor/rescale_order.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/os/files.h"
#include "launcher/keeper/run_file.h"

namespace ganymede::launcher {
namespace {

constexpr const char* file = "ipc/rescale.json";

}  // namespace

void note_rescale_order(const RescaleOrder& order) {
  const coordinator::WorldWish& wish = order.wish;
  nlohmann::ordered_json object = {{"job", order.job},
                                   {"ranks", wish.ranks},
                                   {"expert_group", wish.expert_group},
                                   {"replicas", wish.replicas},
                                   {"without", wish.without}};
  os::write_file_atomically(file, object.dump() + "\n");
}

std::optional<RescaleOrder> read_rescale_order() {
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    auto object = nlohmann::json::parse(os::read_file(file));
    coordinator::WorldWish wish{.ranks = object.at("ranks").get<int>(),
                                .expert_group = object.at("expert_group").get<int>(),
                                .replicas = object.at("replicas").get<int>(),
                                .without = object.at("without").get<std::vector<int>>()};
    return RescaleOrder{object.at("job").get<std::uint64_t>(), wish};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // the run then ends with a checkpoint, as it was about to
  }
}

void clear_rescale_order() { keeper::remove_run_file(file); }

}  // namespace ganymede::launcher
