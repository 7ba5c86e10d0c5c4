#include "launcher/supervisor/program.h"

/// The launcher of one node.
int main(int argc, char** argv) { return ganymede::launcher::program(argc, argv); }
