#pragma once

#include <string>

#include "tests/support/temporary_folder.h"

namespace ganymede::test {

/// A folder with the real `ganymede`, keeper and launcher, and with fake services in the place of the real ones. What a
/// fake service does is told by the environment variable FAKE_<KIND> (FAKE_WORKER, …):
///     serve        registers, sends heartbeats, ends when it is asked to (standard); an optimizer server also says
///     that
///                  its state is loaded
///     loading      as serve, but never loads its state
///     die          ends at once with exit code 3, after a line in its log
///     usage        ends at once with exit code 2
///     fatal        registers, then reports a fault that it cannot mend
///     deaf         neither registers nor ends
///     crash        registers, then crashes
///     apart        a worker that says of every generation that it failed
///     sleeps       as serve, but the first in a run stands still in what it did before
///     stubborn     as serve, but takes no notice of being asked to end
/// With FAKE_PACK, packing a dataset takes until it is stopped; FAKE_DATASET is the hash that a dataset has.
class FakePrograms {
 public:
  FakePrograms();
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace ganymede::test
