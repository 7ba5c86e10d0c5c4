#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "common/collectives/collectives.h"

namespace ganymede::collectives {

/// Lets libtorch's rendezvous use our key-value store; keys get the group's name as a prefix.
class StoreBridge : public c10d::Store {
 public:
  StoreBridge(std::shared_ptr<collectives::Store> store, std::string prefix, double timeout_seconds);

  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
  // Not part of the rendezvous of Gloo: they throw.
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;

 private:
  std::shared_ptr<collectives::Store> store_;
  std::string prefix_;
  double timeout_seconds_;
};

}  // namespace ganymede::collectives
