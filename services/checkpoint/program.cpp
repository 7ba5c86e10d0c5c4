#include "services/checkpoint/program.h"

#include <cstdio>
#include <string_view>

#include "common/service/service.h"
#include "services/checkpoint/checkpoint_service.h"
#include "services/checkpoint/commands.h"

namespace ganymede::checkpoint {

int program(int argc, char** argv) {
  bool is_service = argc > 1 && (std::string_view(argv[1]) == "--run" || std::string_view(argv[1]) == "--rank");
  return is_service ? service::run(service::Kind::checkpoint, argc, argv, service_body) : commands(argc, argv);
}

}  // namespace ganymede::checkpoint
