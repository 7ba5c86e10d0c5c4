#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/numerics/vector_units/comparison.h"
#include "tests/numerics/vector_units/results.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::vector_units {
namespace {

/// A 64-bit Arm processor as qemu imitates it, and one of its vector units.
struct Machine {
  const char* name;
  const char* processor;  // qemu's -cpu
  const char* unit;       // as Highway calls it
  std::size_t lanes;      // of fp32
};

void PrintTo(const Machine& machine, std::ostream* out) { *out << machine.processor << " " << machine.unit; }

/// Exit status of `arm_results` on that processor; what it writes goes to `file`.
int run(const char* processor, const char* unit, const std::string& file) {
  std::string command = "ulimit -c 0; " GANYMEDE_QEMU " -cpu ";
  return std::system((command + processor + " " GANYMEDE_ARM_RESULTS " " + unit + " > " + file).c_str());
}

std::vector<Result> read_results(std::istream& from) {
  std::vector<Result> results;
  for (std::string name, length; std::getline(from, name) && std::getline(from, length);) {
    Result result{name, std::vector<std::byte>(std::stoul(length))};
    from.read(reinterpret_cast<char*>(result.bytes.data()), static_cast<std::streamsize>(result.bytes.size()));
    from.ignore(1);
    results.push_back(std::move(result));
  }
  return results;
}

class Arm : public testing::TestWithParam<Machine> {};

/// The optimizers against the scalar formula, all other kernels against this machine's own.
TEST_P(Arm, KernelsHaveTheBitsOfThisMachine) {
  test::TemporaryFolder folder;
  std::string file = folder.path() + "/results";
  ASSERT_EQ(run(GetParam().processor, GetParam().unit, file), 0);
  std::ifstream from(file, std::ios::binary);
  std::string lanes;
  std::getline(from, lanes);
  EXPECT_EQ(lanes, std::to_string(GetParam().lanes));
  std::vector<Result> expected = optimizer_results(scalar_reference(true));
  for (Result& result : wire_results()) expected.push_back(std::move(result));
  expect_same(read_results(from), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Units, Arm,
    testing::Values(Machine{"Neon", "cortex-a72", "NEON", 4}, Machine{"SveOf512Bits", "a64fx", "SVE", 16},
                    Machine{"SveOf128Bits", "max,sve128=on", "SVE", 4},
                    Machine{"SveOf256Bits", "max,sve256=on", "SVE", 8},
                    Machine{"SveOf2048Bits", "max,sve2048=on,sve-default-vector-length=256", "SVE", 64},
                    Machine{"Sve2Of128Bits", "max,sve128=on", "SVE2", 4},
                    Machine{"Sve2Of512Bits", "max,sve512=on", "SVE2", 16},
                    Machine{"SveFixedAt256Bits", "max,sve256=on", "SVE_256", 8},
                    Machine{"Sve2FixedAt128Bits", "max,sve128=on", "SVE2_128", 4}),
    [](const auto& test) { return std::string(test.param.name); });

/// So the tests above ran the instructions that they name.
TEST(ArmProcessor, WithoutSveDiesOfItsInstructions) {
  test::TemporaryFolder folder;
  int status = run("cortex-a72", "SVE", folder.path() + "/results");
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGILL) << "as a shell says it";
}

}  // namespace
}  // namespace ganymede::vector_units
