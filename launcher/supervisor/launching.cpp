#include "launcher/supervisor/launching.h"

#include <unistd.h>

#include "common/base/log.h"
#include "launcher/keeper/ended_launcher.h"
#include "launcher/supervisor/go_on.h"
#include "launcher/supervisor/rescale_order.h"
#include "launcher/supervisor/service_binaries.h"

namespace ganymede::launcher {

Launching::Launching(const Options& given, const std::string& folder)
    : options(given), programs(folder), terminal(STDOUT_FILENO) {
  open_door();
  if (keeper::ended_launcher()) return;  // it goes on with the run of the one before
  clear_go_on();
  clear_rescale_order();
  if (std::string line = ServiceBinaries::clear(); !line.empty()) terminal.line(line);
}

void Launching::open_door() {
  door = std::make_unique<PhaseServer>(options.run, "recovering", "making the run directory ready");
}

config::Config Launching::recipe() const {
  std::vector<std::string> settings = options.settings;
  settings.insert(settings.end(), world_settings.begin(), world_settings.end());
  return config::load(options.recipe, settings);
}

std::optional<Cells> Launching::intact_cells(std::uint64_t job) {
  if (keeper.list(Deadline::after_seconds(10)).empty()) return std::nullopt;
  ready = resume_run(*this);
  if (job == 0 || ready.job.id == job) {
    if (auto cells = Cells::attach(ready.config, ready.job, ranks(), keeper)) {
      log::info("the segments of the launcher before this one are intact; the run goes on with them");
      return cells;
    }
  }
  Cells::drop_all(keeper);
  return std::nullopt;
}

Cells Launching::new_cells() {
  enter("giving the segments their memory");
  return Cells::create(ready.config, ready.job, ranks(), ready.load_step, keeper, placing_shown(signals, terminal));
}

}  // namespace ganymede::launcher
