#include "launcher/keeper/program.h"

/// The keeper of one node.
int main(int argc, char** argv) { return ganymede::keeper::program(argc, argv); }
