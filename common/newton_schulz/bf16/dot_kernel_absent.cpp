#include "common/newton_schulz/bf16/dot_kernel.h"

#include "common/base/error.h"

namespace ganymede::newton_schulz::bf16 {

namespace {

[[noreturn]] void not_available() { fail("this processor has no AVX512-BF16: ask available() first"); }

}  // namespace

bool available() { return false; }
void pack_rows(Source, std::int64_t, std::int64_t, std::uint32_t*) { not_available(); }
void pack_columns(Source, std::int64_t, std::int64_t, std::uint32_t*) { not_available(); }
void multiply(const Block&) { not_available(); }

}  // namespace ganymede::newton_schulz::bf16
