#include "common/cell/exchange_layout.h"

#include <fmt/format.h>

namespace ganymede::shm {

Layout exchange_layout() {
  return lay_out("exchange", {{"channels", ElementType::u8, {collective_channels, collective_channel_bytes}, 0}});
}

std::string pool_name(std::uint64_t epoch) { return fmt::format("pool.{}", epoch); }

Layout pool_layout(std::int64_t pool_bytes, std::uint64_t epoch) {
  return lay_out(pool_name(epoch), {{"pool", ElementType::u8, {pool_bytes}, 0}});
}

}  // namespace ganymede::shm
