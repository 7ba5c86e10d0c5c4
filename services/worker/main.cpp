#include "services/worker/engine/program.h"

/// The worker of one rank; `eval` and `generate` run the model without a job.
int main(int argc, char** argv) { return ganymede::worker::program(argc, argv); }
