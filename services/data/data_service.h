#pragma once

#include "common/service/service.h"

namespace ganymede::data {

/// Body of the data server: checks the dataset against the configuration and `content`, the hash that it had when the
/// launcher started the run, publishes the validation rows, then keeps
/// the batch slots filled ahead of `decided_step` until it is told to finish. Throws Error when the dataset does not
/// fit the run.
void serve(service::Context& context, const std::string& content);

}  // namespace ganymede::data
