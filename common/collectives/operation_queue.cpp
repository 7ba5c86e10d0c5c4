#include "common/collectives/operation_queue.h"

#include <fmt/format.h>

#include <utility>

namespace ganymede::collectives {
namespace {

// Behind computation an operation has no deadline of its own: who waits for it has one, and ends it.
constexpr double unattended_seconds = 7 * 24 * 3600;

}  // namespace

class OperationQueue::Ticket : public Pending {
 public:
  Ticket(OperationQueue& queue, std::uint64_t number) : queue_(queue), number_(number) {}
  void wait(Deadline deadline) override { queue_.wait(number_, deadline); }

 private:
  OperationQueue& queue_;
  std::uint64_t number_;
};

OperationQueue::OperationQueue(std::string group, std::function<void()> interrupt)
    : group_(std::move(group)), interrupt_(std::move(interrupt)), thread_([this] { serve(); }) {}

OperationQueue::~OperationQueue() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    if (!failed_ && completed_ < added_) fail_with("ended");
    work_.notify_all();
  }
  thread_.join();
}

void OperationQueue::throw_if_failed() const {
  if (failed_) throw CollectiveError(failure_);
}

void OperationQueue::fail_with(const std::string& text) {
  if (failed_) return;
  failed_ = true;
  failure_ = text.starts_with("group ") ? text : fmt::format("group {}: {}", group_, text);
  queue_.clear();
  interrupt_();
  changed_.notify_all();
}

void OperationQueue::abort() {
  std::lock_guard lock(mutex_);
  fail_with("aborted");
}

PendingPtr OperationQueue::add(Work work) {
  std::lock_guard lock(mutex_);
  throw_if_failed();
  queue_.push_back(std::move(work));
  work_.notify_one();
  return std::make_unique<Ticket>(*this, ++added_);
}

void OperationQueue::run_next(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  running_ = true;
  {
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::string fault;
    try {
      work(deadline);
    } catch (const std::exception& error) {
      fault = error.what();
    }
    lock.lock();
    if (!fault.empty()) fail_with(fault);
  }
  running_ = false;
  ++completed_;
  changed_.notify_all();
}

void OperationQueue::wait(std::uint64_t number, Deadline deadline) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  while (!failed_ && completed_ < number) {
    if (!running_) {
      run_next(lock, deadline);
    } else if (changed_.wait_for(lock, deadline.left()) == std::cv_status::timeout && deadline.passed() &&
               completed_ < number) {
      fail_with("the deadline of a wait has passed");
    }
  }
  // Until the operation under way has noticed that it is over, it may touch its buffers.
  if (failed_) changed_.wait(lock, [this] { return !running_; });
  --waiters_;
  if (waiters_ == 0) work_.notify_one();
  throw_if_failed();
}

void OperationQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return ending_ || (!queue_.empty() && !running_ && waiters_ == 0); });
    if (ending_) return;
    run_next(lock, Deadline::after_seconds(unattended_seconds));
  }
}

}  // namespace ganymede::collectives
