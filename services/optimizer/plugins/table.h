#pragma once

#include <cstddef>
#include <cstdint>

#include "common/optimizer_abi/ganymede_optimizer.h"

namespace ganymede::plugins {

/// A hyper-parameter that may be any number in its range, and one without fractions.
constexpr GanymedeHyperParameter number(const char* name, const char* help, double standard, double lowest,
                                        double highest) {
  return {name, help, standard, lowest, highest, 0, 0};
}
constexpr GanymedeHyperParameter whole_number(const char* name, const char* help, double standard, double lowest,
                                              double highest) {
  return {name, help, standard, lowest, highest, GANYMEDE_WHOLE_NUMBER, 0};
}

/// A built-in plugin's table; the arrays have to live as long as the library.
template <std::size_t slots, std::size_t keys>
constexpr GanymedeOptimizer table(const char* name, const GanymedeStateSlot (&state)[slots],
                                  const GanymedeHyperParameter (&hyper_parameters)[keys],
                                  int (*update_chunk)(const GanymedeStep*, const GanymedeChunk*),
                                  int (*apply_chunk)(const GanymedeStep*, const GanymedeChunk*) = nullptr,
                                  int (*update_matrix)(const GanymedeStep*, const GanymedeMatrix*) = nullptr) {
  return {GANYMEDE_OPTIMIZER_ABI,
          sizeof(GanymedeOptimizer),
          name,
          "1.0",
          slots,
          sizeof(GanymedeStateSlot),
          keys,
          sizeof(GanymedeHyperParameter),
          state,
          hyper_parameters,
          update_chunk,
          apply_chunk,
          update_matrix,
          0,
          nullptr};
}

/// The same of a plugin that asks for reductions.
template <std::size_t names>
constexpr GanymedeOptimizer asking(GanymedeOptimizer table, const char* const (&reductions)[names]) {
  table.reduction_count = names;
  table.reductions = reductions;
  return table;
}

}  // namespace ganymede::plugins
