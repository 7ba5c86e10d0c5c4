#include "services/checkpoint/program.h"

/// The checkpoint service of one rank; `list` and `verify` read checkpoints.
int main(int argc, char** argv) { return ganymede::checkpoint::program(argc, argv); }
