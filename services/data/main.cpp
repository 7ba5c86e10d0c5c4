#include "services/data/program.h"

/// The data server of one rank; `pack` and `inspect` work on datasets.
int main(int argc, char** argv) { return ganymede::data::program(argc, argv); }
