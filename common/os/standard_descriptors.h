#pragma once

namespace ganymede::os {

/// Opens /dev/null for each of the descriptors 0 to 2 that is closed: the next file that is opened would become it, and
/// what is printed would land there. To be called before a thread is started and a file opened.
void open_standard_descriptors();

}  // namespace ganymede::os
