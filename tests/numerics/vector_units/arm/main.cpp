#include <cstdint>
#include <cstdio>

#include "tests/numerics/vector_units/arm/chosen_unit.h"
#include "tests/numerics/vector_units/results.h"

namespace {

void write(const ganymede::vector_units::Result& result) {
  std::printf("%s\n%zu\n", result.name.c_str(), result.bytes.size());
  std::fwrite(result.bytes.data(), 1, result.bytes.size(), stdout);
  std::putchar('\n');
}

}  // namespace

/// arm_results UNIT: writes lanes of a vector, then every result of the kernels: name, length, bytes.
int main(int argc, char** argv) {
  using namespace ganymede::vector_units;
  if (argc != 2 || !choose_unit(argv[1])) {
    std::fprintf(stderr, "arm_results NEON | SVE | SVE2 | SVE_256 | SVE2_128\n");
    return 2;
  }
  std::printf("%zu\n", lanes_of_chosen_unit());
  for (const Result& result : optimizer_results(kernels())) write(result);
  for (const Result& result : wire_results()) write(result);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
