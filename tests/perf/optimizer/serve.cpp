#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "common/base/error.h"
#include "tests/perf/optimizer/measures.h"

/// perf_optimizer MILLIONS THREADS: says how many elements and bytes an update moves, then reads names of measures,
/// one a line, and answers each with its seconds. compare.py asks and makes ratios.
int main(int argc, char** argv) {
  using ganymede::optimizer::Measures;
  try {
    int millions = argc == 3 ? std::atoi(argv[1]) : 0, threads = argc == 3 ? std::atoi(argv[2]) : 0;
    if (millions < 1 || millions > 4096 || threads < 1 || threads > 256) {
      ganymede::fail_usage("perf_optimizer MILLIONS THREADS");
    }
    Measures measures(millions, threads);
    fmt::print("{} {}\n", measures.elements(), measures.elements() * Measures::update_bytes);
    std::fflush(stdout);
    for (std::string name; std::getline(std::cin, name);) {
      fmt::print("{}\n", measures.run(name));
      std::fflush(stdout);
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "perf_optimizer: {}\n", error.what());
    return 1;
  }
}
