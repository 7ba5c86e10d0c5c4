#include "common/model_spec/model_hash.h"

#include <fmt/format.h>

#include "common/base/hash.h"

namespace ganymede::model_spec {

std::string model_hash(const std::vector<ParameterSpec>& parameters) {
  std::string text;
  for (const ParameterSpec& parameter : parameters) {
    text += parameter.name;
    for (std::int64_t size : parameter.shape) text += fmt::format(" {}", size);
    text += '\n';
  }
  return hash128(text).hex();
}

}  // namespace ganymede::model_spec
