#include "tests/support/fake_programs.h"
#include "tests/support/tree.h"

#include <filesystem>

namespace ganymede::test {

FakePrograms::FakePrograms() {
  namespace fs = std::filesystem;
  fs::path build = GANYMEDE_BINARY_DIR, here = folder_.path();
  // Copies, not links: a program looks for its siblings where its own file lies.
  for (const char* name : {"ganymede", "ganymede-keeper", "ganymede-launcher"})
    fs::copy_file(build / name, here / name);
  for (const char* kind : {"worker", "optimizer", "data", "checkpoint"})
    fs::copy_file(build / "fake_service", here / (std::string("ganymede-") + kind));
}

}  // namespace ganymede::test
