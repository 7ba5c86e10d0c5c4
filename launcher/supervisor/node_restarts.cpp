#include "launcher/supervisor/node_restarts.h"

#include <map>

#include "launcher/supervisor/service_id.h"

namespace ganymede::launcher {

std::vector<std::string> restarts_since(const coordinator::NodeState& before, const coordinator::NodeState& now,
                                        const std::string& name) {
  std::vector<std::string> lines;
  std::map<ServiceId, int> known;
  if (before.session == now.session)
    for (const auto& cell : before.cells)
      for (const auto& service : cell.services) known[{service.kind, cell.rank}] = service.restarts;
  for (const auto& cell : now.cells) {
    for (const auto& service : cell.services) {
      ServiceId id{service.kind, cell.rank};
      if (service.restarts > known[id])
        lines.push_back(fmt::format("{}: {} is started again (restart {})", name, id.text(), service.restarts));
    }
  }
  return lines;
}

std::vector<std::string> refusals_since(const coordinator::NodeState& before, const coordinator::NodeState& now,
                                        const std::string& name) {
  std::vector<std::string> lines;
  std::map<ServiceId, std::uint64_t> known;  // also of another launcher of the node: it keeps them
  for (const auto& cell : before.cells)
    for (const auto& service : cell.services) known[{service.kind, cell.rank}] = service.refused;
  for (const auto& cell : now.cells)
    for (const auto& service : cell.services)
      if (!service.refusal.empty() && service.refused != known[{service.kind, cell.rank}])
        lines.push_back(fmt::format("{}: {}", name, service.refusal));
  return lines;
}

}  // namespace ganymede::launcher
