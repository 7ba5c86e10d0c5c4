#include "services/optimizer/handover/handover.h"
#include "services/optimizer/program.h"

/// The optimizer server of one rank.
int main(int argc, char** argv) {
  return ganymede::optimizer::program(argc, argv, ganymede::optimizer::serve_handovers);
}
