#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/service/service.h"

namespace ganymede::launcher {

/// One service of one cell. There may be several optimizer servers, each of a state epoch.
struct ServiceId {
  service::Kind kind{};
  int rank = 0;
  std::uint64_t epoch = 0;
  auto operator<=>(const ServiceId&) const = default;

  /// "worker of rank 1"; "optimizer of rank 1 (state epoch 2)"
  std::string text() const {
    std::string text = fmt::format("{} of rank {}", service::name(kind), rank);
    return epoch == 0 ? text : fmt::format("{} (state epoch {})", text, epoch);
  }
  /// "worker.1": stem of its files in logs/
  std::string stem() const { return service::stem(kind, rank, epoch); }
};

constexpr service::Kind all_kinds[] = {service::Kind::checkpoint, service::Kind::optimizer, service::Kind::data,
                                       service::Kind::worker};

/// The one of this name (service::name); nothing: there is none.
inline std::optional<service::Kind> kind_named(std::string_view name) {
  for (service::Kind kind : all_kinds)
    if (name == service::name(kind)) return kind;
  return std::nullopt;
}

}  // namespace ganymede::launcher
