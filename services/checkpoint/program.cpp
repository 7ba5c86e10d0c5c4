#include "services/checkpoint/program.h"

#include <cstdio>
#include <string_view>

#include "common/service/service.h"
#include "services/checkpoint/checkpoint_service.h"
#include "services/checkpoint/commands.h"

namespace ganymede::checkpoint {

int program(int argc, char** argv) {
  std::string_view first = argc > 1 ? argv[1] : "";
  bool is_service = first == "--run" || first == "--rank" || first == "--protocol";
  return is_service ? service::run(service::Kind::checkpoint, argc, argv, service_body) : commands(argc, argv);
}

}  // namespace ganymede::checkpoint
