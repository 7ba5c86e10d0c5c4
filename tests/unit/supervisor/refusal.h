#pragma once

#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"

namespace ganymede::launcher {

/// The text of the usage Error that `call` throws; "taken" when it throws none.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
    return "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
    return error.what();
  }
}

}  // namespace ganymede::launcher
