#include "common/collectives/node_link.h"

namespace ganymede::collectives {

std::size_t total_bytes(const Runs& runs) {
  std::size_t bytes = 0;
  for (const Run& run : runs) bytes += run.bytes;
  return bytes;
}

}  // namespace ganymede::collectives
