#include "launcher/cli/status_binaries.h"

#include <fmt/format.h>

#include "common/base/printable.h"

namespace ganymede::cli {

std::string binaries_text(const fbs::Status& status) {
  std::string text;
  for (const auto* cell : *status.cells()) {
    for (const auto* service : *cell->services()) {
      if (service->binary() != nullptr)
        text += fmt::format("\n{} of rank {} runs {}{}", fbs::EnumNameServiceKind(service->service()), cell->rank(),
                            printable(service->binary()->str()), service->trial() ? ", on trial" : "");
      if (service->refusal() != nullptr) text += "\n" + printable(service->refusal()->str());
    }
  }
  return text;
}

}  // namespace ganymede::cli
