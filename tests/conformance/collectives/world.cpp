#include "tests/conformance/collectives/world.h"

#include <exception>

#include "common/collectives/gloo/gloo_backend.h"

namespace ganymede::collectives {

void MemoryStore::set(const std::string& key, ConstBytes value) {
  std::lock_guard lock(mutex_);
  values_[key].assign(value.begin(), value.end());
  changed_.notify_all();
}

std::vector<std::byte> MemoryStore::get(const std::string& key, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, deadline.left(), [&] { return values_.contains(key); })) {
    throw CollectiveError("nobody set " + key);
  }
  return values_[key];
}

std::int64_t MemoryStore::add(const std::string& key, std::int64_t amount) {
  std::lock_guard lock(mutex_);
  return counters_[key] += amount;
}

std::vector<Backend> backends() {
  auto gloo = [](const Group& group, std::shared_ptr<Store> store) { return make_gloo(group, std::move(store), "lo"); };
  auto single = [](const Group& group, std::shared_ptr<Store>) { return make_single(group); };
  return {{"gloo", 8, gloo}, {"single", 1, single}};
}

void run_world(const Backend& backend, int ranks, const std::function<void(Communicator&)>& body) {
  auto store = std::make_shared<MemoryStore>();
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<std::thread> threads;
  std::vector<int> members(ranks);
  for (int rank = 0; rank < ranks; ++rank) members[rank] = rank;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        auto communicator = backend.make(Group{"world", members, rank, 20}, store);
        body(*communicator);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace ganymede::collectives
