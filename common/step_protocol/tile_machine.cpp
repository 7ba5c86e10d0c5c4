#include "common/step_protocol/tile_machine.h"

namespace ganymede::step_protocol {

void fail_of_words(const StripState& words, std::uint64_t chunks_done) {
  fail("tiles of chunk {} and later are counted, but {} chunks are; start again from the last checkpoint",
       words.done >> tile_bits, chunks_done);
}

}  // namespace ganymede::step_protocol
