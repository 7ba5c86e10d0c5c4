#pragma once

#include <compare>
#include <string>

#include "common/base/error.h"
#include "common/service/service.h"

namespace ganymede::launcher {

/// One service of one cell.
struct ServiceId {
  service::Kind kind{};
  int rank = 0;
  auto operator<=>(const ServiceId&) const = default;

  /// "worker of rank 1"
  std::string text() const { return fmt::format("{} of rank {}", service::name(kind), rank); }
  /// "worker.1": stem of its files in logs/
  std::string stem() const { return fmt::format("{}.{}", service::name(kind), rank); }
};

constexpr service::Kind all_kinds[] = {service::Kind::checkpoint, service::Kind::optimizer, service::Kind::data,
                                       service::Kind::worker};

}  // namespace ganymede::launcher
