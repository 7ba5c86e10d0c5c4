#include "services/worker/engine/program.h"

#include <string_view>

#include "services/worker/engine/inference/commands.h"
#include "services/worker/engine/job/driver.h"

namespace ganymede::worker {

int program(int argc, char** argv) {
  std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "generate" || first == "eval" || first == "--help") return inference_program(argc, argv);
  return service::run(service::Kind::worker, argc, argv, drive);
}

}  // namespace ganymede::worker
