#include "common/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace ganymede {

void impossible(const char* file, int line, const std::string& text) {
  std::fputs(fmt::format("{}:{}: a state that cannot happen: {}\n", file, line, text).c_str(), stderr);
  std::fflush(stderr);
  std::abort();
}

}  // namespace ganymede
