#pragma once

#include <memory>
#include <mutex>

#include "common/collectives/collectives.h"
#include "common/service/service.h"

namespace ganymede::worker {

/// The rendezvous of one generation, served by the launcher. Every call throws CollectiveError when the generation is
/// over, the service must finish, or the launcher does not answer in time. Thread-safe.
class LauncherStore : public collectives::Store {
 public:
  /// `context` must outlive it.
  LauncherStore(service::Context& context, std::uint64_t generation);
  void set(const std::string& key, collectives::ConstBytes value) override;
  std::vector<std::byte> get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

 private:
  msg::Message call(const msg::Client::Fill& fill);
  void check_generation() const;

  service::Context& context_;
  std::uint64_t generation_;
  std::mutex mutex_;
  std::unique_ptr<msg::Client> client_;
};

}  // namespace ganymede::worker
