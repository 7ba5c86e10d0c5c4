#include "common/newton_schulz/forms.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/newton_schulz/cblas/cblas_products.h"
#include "tests/unit/newton_schulz/cases.h"

namespace ganymede::newton_schulz {
namespace {

/// Multiplies, and counts two operations for each multiplication and addition of a whole product.
class CountingProducts : public CblasProducts {
 public:
  void multiply(const Product& product) override {
    count(product);
    CblasProducts::multiply(product);
  }
  void multiply_alone(const Product& product) override {
    count(product);
    CblasProducts::multiply_alone(product);
  }
  double operations = 0;

 private:
  void count(const Product& product) {
    const auto& [left, transposed] = product.left;
    operations += 2. * static_cast<double>(product.count * product.out.rows * product.out.cols *
                                           (transposed ? left.rows : left.cols));
  }
};

TEST(Forms, OperationsAreThoseOfTheProductsThatAreComputed) {
  for (const Shape shape : {Shape{8, 8}, {6, 20}, {20, 6}, {1, 9}}) {
    const auto in = reference::to_fp32(reference::random_matrix(1, 3 * shape.rows, shape.cols));
    for (const auto& [name, schedule] : named_schedules()) {
      for (const auto form : both_forms) {
        CountingProducts products;
        run(products, in, shape, {schedule, form});
        EXPECT_EQ(products.operations, 3 * operations(form, shape.rows, shape.cols, schedule))
            << shape << " " << name << " " << name_of(form);
      }
    }
  }
}

TEST(Forms, AutomaticTakesTheOneWithFewerOperations) {
  for (const Shape shape : {Shape{8, 8}, {8, 11}, {8, 13}, {13, 8}, {8, 80}, {80, 8}}) {
    const auto in = reference::to_fp32(reference::random_matrix(1, shape.rows, shape.cols));
    for (const auto& [name, schedule] : named_schedules()) {
      CountingProducts products;
      run(products, in, shape, {schedule, Form::automatic});
      EXPECT_EQ(products.operations, std::min(operations(Form::standard, shape.rows, shape.cols, schedule),
                                              operations(Form::gram, shape.rows, shape.cols, schedule)))
          << shape << " " << name;
    }
  }
  EXPECT_EQ(form_of(Form::automatic, Element::fp32, 512, 512, schedule_of("kj5")), Form::standard);
  EXPECT_EQ(form_of(Form::automatic, Element::fp32, 1792, 6144, schedule_of("kj5")), Form::gram);
}

TEST(Forms, Bf16HasTheStandardFormAlone) {
  EXPECT_EQ(form_of(Form::automatic, Element::bf16, 1792, 6144, schedule_of("kj5")), Form::standard);
  EXPECT_THROW(form_of(Form::gram, Element::bf16, 1792, 6144, schedule_of("kj5")), Error);
  EXPECT_THROW(form_of(Form::standard, Element::bf16, 1792, 6144, schedule_of("cans5")), Error);
}

}  // namespace
}  // namespace ganymede::newton_schulz
