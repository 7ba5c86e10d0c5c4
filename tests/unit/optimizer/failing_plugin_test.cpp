#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "services/optimizer/plugin.h"
#include "tests/unit/optimizer/cell.h"

namespace ganymede::optimizer {
namespace {

TEST(UpdateEngine, FailingPluginIsNamedWithItsParameter) {
  Plugin failing = load_plugin(FAULTY_PLUGINS "/failing.so");
  Cell cell(Cell::small_config());
  cell.decide({.hyper = {0.1}});
  UpdateEngine engine(cell.placement, {failing.table}, cell.memory, cell.options());
  Values before = cell.values();
  try {
    Cell::finish(engine);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("model.embed_tokens.weight in step 1 (code 7)"));
  }
  EXPECT_TRUE(cell.values() == before);
}

}  // namespace
}  // namespace ganymede::optimizer
