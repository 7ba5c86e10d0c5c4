#pragma once

#include "common/service/service.h"

namespace ganymede::data {

/// Body of the data server: checks the dataset against the configuration, publishes the validation rows, then keeps
/// the batch slots filled ahead of `decided_step` until it is told to finish. Throws Error when the dataset does not
/// fit the run.
void serve(service::Context& context);

}  // namespace ganymede::data
