#pragma once

#include <string>

namespace ganymede::cli {

/// `ganymede ctl RUN where --stacks`: has every service write the stacks of its threads, waits for those of this node,
/// and shows them after what `ctl where` shows. JSON names their files. Throws Error when no job runs there.
void where_with_stacks(const std::string& run, bool json);

}  // namespace ganymede::cli
