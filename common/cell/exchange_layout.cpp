#include "common/cell/exchange_layout.h"

namespace ganymede::shm {

Layout exchange_layout(std::int64_t pool_bytes) {
  return lay_out("exchange", {{"channels", ElementType::u8, {collective_channels, collective_channel_bytes}, 0},
                              {"pool", ElementType::u8, {pool_bytes}, 0}});
}

}  // namespace ganymede::shm
