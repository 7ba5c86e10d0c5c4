#include <cstring>

#include "common/base/error.h"
#include "services/worker/model/ends.h"
#include "services/worker/model/parallel.h"
#include "services/worker/model/row_access.h"

namespace ganymede::worker::model {

namespace {

void check_tokens(const std::int64_t* token, std::int64_t count, std::int64_t vocabulary) {
  for (std::int64_t t = 0; t < count; ++t) {
    if (token[t] < 0 || token[t] >= vocabulary) {
      fail(
          "token {} at position {} of a row is outside of the vocabulary of {}; pack the data with the tokenizer that "
          "the model is made for",
          token[t], t, vocabulary);
    }
  }
}

/// Positions of each token that occurs, in order; sorted by token.
struct Occurrences {
  std::vector<std::int64_t> position;
  std::vector<std::size_t> begin;  // of each distinct token, then the number of positions
};

Occurrences occurrences(const std::int64_t* token, std::int64_t count) {
  Occurrences found;
  for (std::int64_t t = 0; t < count; ++t) found.position.push_back(t);
  std::stable_sort(found.position.begin(), found.position.end(),
                   [&](std::int64_t a, std::int64_t b) { return token[a] < token[b]; });
  for (std::size_t i = 0; i < found.position.size(); ++i) {
    if (i == 0 || token[found.position[i]] != token[found.position[i - 1]]) found.begin.push_back(i);
  }
  found.begin.push_back(found.position.size());
  return found;
}

}  // namespace

at::Tensor embed(const at::Tensor& weight, const Row& row) {
  const std::int64_t tokens = row.tokens.size(0);
  const auto* token = row.tokens.const_data_ptr<std::int64_t>();
  check_tokens(token, tokens, weight.size(0));
  auto out = at::empty({tokens, weight.size(1)}, weight.options());
  const Rows from(weight), to(out);
  parallel_rows(tokens, weight.size(1), [&](std::int64_t t) {
    std::memcpy(to[t], from[token[t]], to.size * static_cast<std::size_t>(weight.element_size()));
  });
  return out;
}

void embed_backward(const Row& row, const at::Tensor& grad_output, const at::Tensor& grad_weight, bool accumulate) {
  const auto* token = row.tokens.const_data_ptr<std::int64_t>();
  check_tokens(token, row.tokens.size(0), grad_weight.size(0));
  const auto found = occurrences(token, row.tokens.size(0));
  if (!accumulate) grad_weight.zero_();
  const Rows from(grad_output), to(grad_weight);
  const auto distinct = static_cast<std::int64_t>(found.begin.size()) - 1;
  fork_join(distinct, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> total(to.size);
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      for (std::size_t n = found.begin[i]; n < found.begin[i + 1]; ++n) {
        kernels::to_fp32(from[found.position[n]], total.data(), to.size, n > found.begin[i], from.element);
      }
      auto* out = static_cast<float*>(to[token[found.position[found.begin[i]]]]);
      kernels::to_fp32(total.data(), out, to.size, accumulate, kernels::Element::fp32);
    }
  });
}

}  // namespace ganymede::worker::model
