#include "tests/support/temporary_folder.h"

#include <cstdlib>
#include <filesystem>

#include "common/base/error.h"

namespace ganymede::test {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ganymede.XXXXXX").string();
  if (!mkdtemp(pattern.data())) fail("No temporary folder could be made from {}.", pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ganymede::test
