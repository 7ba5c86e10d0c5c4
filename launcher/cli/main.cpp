#include "launcher/cli/program.h"

/// The command line: runs the program that a command belongs to.
int main(int argc, char** argv) { return ganymede::cli::program(argc, argv); }
