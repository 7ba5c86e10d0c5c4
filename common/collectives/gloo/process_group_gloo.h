#pragma once

// The wheel is built with Gloo, but its headers hide the class unless this is defined. Only the headers of Debian's
// libgloo-dev are used; every symbol comes from libtorch_cpu (its shared library beside libtorch would crash).
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
