#include "tests/conformance/collectives/world.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <exception>
#include <numeric>

#include "common/base/error.h"
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

std::vector<int> Setting::nodes(int ranks) const {
  std::vector<int> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(ranks_per_node > 0 ? rank / ranks_per_node : 0);
  return result;
}

std::vector<Setting> settings() {
  std::vector<int> all{1, 2, 3, 4, 5, 6, 7, 8};
  return {
      {.name = "single", .worlds = {1}},
      {.name = "plain_gloo",
       .worlds = {3, 8},
       .backend = Backend::gloo,
       .port = false,
       .published = false,
       .plain = true},
      {.name = "gloo", .worlds = {2, 5}, .backend = Backend::gloo, .port = false, .published = false},
      {.name = "gloo_on_nodes_of_2",
       .worlds = {5},
       .backend = Backend::gloo,
       .ranks_per_node = 2,
       .port = false,
       .published = false},
      {.name = "shm", .worlds = all, .backend = Backend::shm},
      {.name = "shm_through_staging", .worlds = {2, 5, 8}, .published = false},
      {.name = "composed_of_nodes_of_1", .worlds = {3}, .ranks_per_node = 1},
      {.name = "composed_of_nodes_of_2", .worlds = {3, 5, 8}, .ranks_per_node = 2},
      {.name = "composed_of_nodes_of_3_through_staging", .worlds = {7}, .ranks_per_node = 3, .published = false},
  };
}

std::vector<Setting> connected() {
  std::vector<Setting> all = settings();
  std::erase_if(all, [](const Setting& setting) { return setting.worlds.back() < 2; });
  return all;
}

Member::Member(const Setting& setting, int rank, int ranks, std::shared_ptr<Store> store,
               std::shared_ptr<PublishedMemory> memory)
    : setting_(setting), rank_(rank), ranks_(ranks), store_(std::move(store)), memory_(std::move(memory)) {
  ::signal(SIGPIPE, SIG_IGN);  // as every service does: gloo writes to connections that a dead peer has left
  if (setting_.port) port_ = memory_->port(rank);
}

std::unique_ptr<Communicator> Member::form(const std::string& name, double timeout_seconds) {
  Group group{name, std::vector<int>(static_cast<std::size_t>(ranks_)), rank_, timeout_seconds, setting_.nodes(ranks_)};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  if (setting_.plain) return make_gloo(group, store_, "lo");
  // Little memory for what is summed, so that long sums take several pieces.
  return make_communicator(group, {setting_.backend, setting_.ranks_per_node, port_.get(), store_, "lo", 64u << 10});
}

std::byte* Member::allocate(std::size_t bytes) {
  if (setting_.published) {
    int region = next_region_++ % 2;
    std::span<std::byte> data = memory_->data(rank_, region).subspan(used_[region]);
    GANYMEDE_CHECK(bytes <= data.size(), "a test needs more published memory");
    used_[region] += (bytes + 63) / 64 * 64;
    std::memset(data.data(), 0, bytes);
    return data.data();
  }
  return heap_.emplace_back(std::max<std::size_t>(bytes, 1)).data();
}

void run_world(const Setting& setting, int ranks, const Body& body) {
  auto store = std::make_shared<MemoryStore>();
  auto memory = setting.port ? std::make_shared<PublishedMemory>(ranks) : nullptr;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Member member(setting, rank, ranks, store, memory);
        auto communicator = member.form("world");
        body(member, *communicator);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void run_worlds(const Setting& setting, const Body& body) {
  for (int ranks : setting.worlds) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    run_world(setting, ranks, body);
    if (testing::Test::HasFatalFailure()) return;
  }
}

std::vector<std::size_t> boundaries(const std::vector<std::size_t>& sizes) {
  std::vector<std::size_t> result(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), result.begin() + 1);
  return result;
}

}  // namespace ganymede::collectives
