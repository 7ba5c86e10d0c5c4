#include "launcher/keeper/stop_order.h"

#include <filesystem>
#include <fstream>

#include "common/base/log.h"
#include "launcher/keeper/run_file.h"

namespace ganymede::keeper {
namespace {

// Two files whose being there is all that counts: whoever writes them cannot lower what another wrote.
constexpr const char* after_step_file = "ipc/stop";
constexpr const char* now_file = "ipc/stop.now";

bool exists(const char* file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored);
}

}  // namespace

void note_stop_order(StopOrder order) {
  if (order == StopOrder::none) return;
  const char* file = order == StopOrder::now ? now_file : after_step_file;
  if (!exists(file) && !std::ofstream(file)) log::warn("the order to stop could not be noted in {}", file);
}

StopOrder read_stop_order() {
  if (exists(now_file)) return StopOrder::now;
  return exists(after_step_file) ? StopOrder::after_step : StopOrder::none;
}

void clear_stop_order() {
  for (const char* file : {after_step_file, now_file}) remove_run_file(file);
}

}  // namespace ganymede::keeper
