#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/collectives/collectives.h"

namespace ganymede::collectives {

/// Runs the operations of one communicator one after the other: in the thread that waits for them, or in a thread of
/// its own while nobody waits, so that they make progress behind computation. The first one that fails ends all.
class OperationQueue {
 public:
  /// What an operation does; it throws CollectiveError at the deadline and after `interrupt`.
  using Work = std::function<void(Deadline)>;

  /// `interrupt` ends the waits of the operation under way, and tells the peers; from any thread, several times.
  OperationQueue(std::string group, std::function<void()> interrupt);
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  /// Throws CollectiveError when an operation has failed before or `abort` was called.
  PendingPtr add(Work work);
  /// Thread-safe.
  void abort();

 private:
  class Ticket;
  void wait(std::uint64_t number, Deadline deadline);
  void run_next(std::unique_lock<std::mutex>& lock, Deadline deadline);
  void serve();
  void fail_with(const std::string& text);  // the mutex is held
  void throw_if_failed() const;

  std::string group_;
  std::function<void()> interrupt_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // an operation has ended
  std::condition_variable work_;     // something is to be done, or it is over
  std::deque<Work> queue_;
  std::uint64_t added_ = 0, completed_ = 0;
  int waiters_ = 0;
  bool running_ = false, ending_ = false, failed_ = false;
  std::string failure_;
  std::thread thread_;
};

}  // namespace ganymede::collectives
