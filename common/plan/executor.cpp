#include "common/plan/executor.h"

#include <fmt/format.h>

namespace ganymede::plan {

std::string describe(const Operation& o) {
  std::string text = name(o.kind);
  if (o.layer >= 0 || o.row >= 0 || o.bucket >= 0) text += fmt::format(" layer {}", o.layer);
  if (o.part != Part::whole) text += fmt::format(" {}", name(o.part));
  if (o.bucket >= 0) text += fmt::format(" bucket {}", o.bucket);
  if (o.row >= 0) text += fmt::format(" row {}", o.row);
  return text;
}

}  // namespace ganymede::plan
