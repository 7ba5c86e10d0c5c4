#include "common/newton_schulz/forms.h"

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::newton_schulz {

double operations(Form form, std::int64_t rows, std::int64_t cols, const Schedule& schedule) {
  const auto n = static_cast<double>(std::min(rows, cols)), m = static_cast<double>(std::max(rows, cols));
  if (n == 1) return 0;
  const double wide = 2 * n * n * m, square = 2 * n * n * n;
  double sum = 0;
  for (std::size_t step = 0; step < schedule.size(); ++step) {
    if (schedule[step].c != 0) sum += square;
    const bool first = form == Form::standard || step % gram_steps == 0;
    sum += first ? 2 * wide : 3 * square;  // XXᵀ and QX, or PG, (PG)P and PQ
  }
  return sum;
}

Form form_of(Form form, Element element, std::int64_t rows, std::int64_t cols, const Schedule& schedule) {
  if (element == Element::bf16) {
    if (form == Form::gram) fail_usage("the gram form of Newton–Schulz needs fp32, not bf16: take form standard");
    if (!withstands_bf16(schedule)) {
      fail_usage(
          "this schedule of Newton–Schulz (first triple {:g}, {:g}, {:g}) needs fp32: rounded to bf16 it diverges",
          schedule[0].a, schedule[0].b, schedule[0].c);
    }
    return Form::standard;
  }
  if (form != Form::automatic) return form;
  return operations(Form::gram, rows, cols, schedule) < operations(Form::standard, rows, cols, schedule)
             ? Form::gram
             : Form::standard;
}

}  // namespace ganymede::newton_schulz
