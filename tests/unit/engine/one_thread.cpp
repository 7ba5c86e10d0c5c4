#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace {

/// Ranks are threads here; threads inside of them would only fight for the cores.
class OneThread : public testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
const testing::Environment* const one_thread = testing::AddGlobalTestEnvironment(new OneThread);

}  // namespace
