#include "common/collectives/gloo/store_bridge.h"

#include <utility>

namespace ganymede::collectives {

StoreBridge::StoreBridge(std::shared_ptr<collectives::Store> store, std::string prefix, double timeout_seconds)
    : c10d::Store(std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1e3))),
      store_(std::move(store)),
      prefix_(std::move(prefix)),
      timeout_seconds_(timeout_seconds) {}

c10::intrusive_ptr<c10d::Store> StoreBridge::clone() {
  return c10::make_intrusive<StoreBridge>(store_, prefix_, timeout_seconds_);
}

void StoreBridge::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  store_->set(prefix_ + key, std::as_bytes(std::span(value)));
}

std::vector<std::uint8_t> StoreBridge::get(const std::string& key) {
  std::vector<std::byte> value = store_->get(prefix_ + key, Deadline::after_seconds(timeout_seconds_));
  auto* bytes = reinterpret_cast<const std::uint8_t*>(value.data());
  return {bytes, bytes + value.size()};
}

std::int64_t StoreBridge::add(const std::string& key, std::int64_t value) { return store_->add(prefix_ + key, value); }

void StoreBridge::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void StoreBridge::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  Deadline deadline = Deadline::after(timeout);
  for (const std::string& key : keys) store_->get(prefix_ + key, deadline);
}

bool StoreBridge::deleteKey(const std::string& key) { throw CollectiveError("no key is deleted here: " + key); }
bool StoreBridge::check(const std::vector<std::string>&) { throw CollectiveError("keys are waited for, not probed"); }
std::int64_t StoreBridge::getNumKeys() { throw CollectiveError("keys are not counted here"); }

}  // namespace ganymede::collectives
