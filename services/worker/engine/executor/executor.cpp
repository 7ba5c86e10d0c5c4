#include "services/worker/engine/executor/executor.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/deadline.h"
#include "common/base/error.h"
#include "common/base/threads.h"
#include "common/os/futex.h"
#include "common/plan/pool_meter.h"

namespace ganymede::worker {
namespace {

using Word = std::atomic<std::uint64_t>;
constexpr std::uint64_t pending = 0, complete = 1, given_up = 2;

double milliseconds(Clock::duration span) { return std::chrono::duration<double, std::milli>(span).count(); }

/// One execution of one plan.
struct Run {
  Run(const plan::StepPlan& plan, const OperationTable& table)
      : plan(plan), table(table), done(plan.operations.size()), meter(plan) {
    report.spans.resize(plan.operations.size());
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      queue[static_cast<std::size_t>(plan.operations[i].lane)].push_back(static_cast<int>(i));
    }
  }

  /// Returns when they are complete; false when the run was given up.
  bool wait_for(const std::vector<int>& operations) {
    for (int d : operations) {
      std::uint64_t value;
      while ((value = done[d].load(std::memory_order_acquire)) == pending) {
        os::wait_while_equal(done[d], pending, Deadline::after(std::chrono::seconds(1)));
      }
      if (value == given_up) return false;
    }
    return true;
  }

  const plan::StepPlan& plan;
  const OperationTable& table;
  std::vector<Word> done;
  std::array<std::vector<int>, plan::lane_count> queue;
  std::mutex meter_mutex;
  plan::PoolMeter meter;
  Clock::time_point begin = Clock::now();
  ExecutorReport report;  // each lane writes its own entries
};

}  // namespace

struct ThreadExecutor::State {
  explicit State(ExecutorHooks given) : hooks(std::move(given)) {}

  void lane(int index);
  void run_lane(Run& current, int index);
  void run_operation(Run& current, int operation, LaneUse& use);
  void give_up(std::exception_ptr cause, const std::string& text);
  void stop_waits();
  void end();

  ExecutorHooks hooks;
  std::mutex mutex;
  std::condition_variable changed;
  Run* run = nullptr;
  std::uint64_t runs = 0;
  int active = 0;  // lanes inside the current run
  bool ending = false;
  std::atomic<bool> stopped{false};
  bool cancelled = false;
  std::string why;           // the first fault, or why it was cancelled
  std::exception_ptr fault;  // null when cancelled
  std::vector<std::thread> threads;
};

void ThreadExecutor::State::lane(int index) {
  if (hooks.lane_started) hooks.lane_started(static_cast<plan::Lane>(index));
  std::uint64_t seen = 0;
  while (true) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ending || runs != seen; });
    if (ending) return;
    seen = runs;
    Run& current = *run;
    lock.unlock();
    run_lane(current, index);
    lock.lock();
    if (--active == 0) changed.notify_all();
  }
}

void ThreadExecutor::State::run_lane(Run& current, int index) {
  LaneUse& use = current.report.lanes[index];
  for (int operation : current.queue[index]) {
    if (stopped) return;
    try {
      run_operation(current, operation, use);
    } catch (const std::exception& e) {
      give_up(std::current_exception(), fmt::format("{}: {}", describe(current.plan.operations[operation]), e.what()));
    } catch (...) {
      give_up(std::current_exception(), describe(current.plan.operations[operation]) + ": unknown exception");
    }
  }
}

void ThreadExecutor::State::run_operation(Run& current, int index, LaneUse& use) {
  const plan::Operation& operation = current.plan.operations[index];
  Clock::time_point begin = Clock::now();
  bool alone = hooks.one_at_a_time && index > 0;
  if (!current.wait_for(operation.after) || (alone && !current.wait_for({index - 1}))) return;
  Clock::time_point start = Clock::now();
  use.wait_ms += milliseconds(start - begin);
  if (stopped) return;
  if (const OperationFunction& function = current.table[operation.kind]) {
    if (hooks.operation_started) hooks.operation_started(operation);
    function(operation, index);
    if (hooks.operation_ended) hooks.operation_ended(operation);
  }
  plan::OutsideWait waited = hooks.take_outside_wait ? hooks.take_outside_wait() : plan::OutsideWait{};
  double outside = waited.words_ms + waited.collectives_ms;
  Clock::time_point end = Clock::now();
  current.report.spans[index] = {milliseconds(start - current.begin), milliseconds(end - current.begin), waited};
  use.busy_ms += milliseconds(end - start) - outside;
  use.wait_ms += outside;
  {
    std::lock_guard guard(current.meter_mutex);
    current.meter.complete(index);
  }
  os::store_and_wake(current.done[index], complete);
}

void ThreadExecutor::State::give_up(std::exception_ptr cause, const std::string& text) {
  {
    std::lock_guard guard(mutex);
    if (stopped) return;
    fault = std::move(cause);
    why = text;
    stopped = true;
    stop_waits();
    changed.notify_all();
  }
  if (hooks.stop) hooks.stop();
}

/// Lanes that wait for an operation see that it will not come. Called with the mutex held.
void ThreadExecutor::State::stop_waits() {
  if (run == nullptr) return;
  for (Word& word : run->done) {
    std::uint64_t expected = pending;
    if (word.compare_exchange_strong(expected, given_up)) os::wake(word);
  }
}

/// Lanes that are in no run leave their threads.
void ThreadExecutor::State::end() {
  {
    std::lock_guard guard(mutex);
    ending = true;
  }
  changed.notify_all();
}

ThreadExecutor::ThreadExecutor(ExecutorHooks hooks) : state_(std::make_unique<State>(std::move(hooks))) {
  State& state = *state_;
  state.threads = start_threads(
      plan::lane_count, [&state](int i) { state.lane(i); }, [&state] { state.end(); });
}

ThreadExecutor::~ThreadExecutor() {
  state_->end();
  for (std::thread& thread : state_->threads) thread.join();
}

ExecutorReport ThreadExecutor::run(const plan::StepPlan& plan, const OperationTable& table) {
  Run current(plan, table);
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (!state.stopped) {
    state.run = &current;
    state.active = plan::lane_count;
    ++state.runs;
    state.changed.notify_all();
    state.changed.wait(lock, [&] { return state.active == 0 || state.stopped; });
    bool ended = state.changed.wait_for(lock, state.hooks.grace, [&] { return state.active == 0; });
    GANYMEDE_CHECK(ended, "a lane did not end within {} s after: {}",
                   std::chrono::duration<double>(state.hooks.grace).count(), state.why);
    state.run = nullptr;
  }
  if (state.cancelled) throw Cancelled(state.why);
  if (state.fault) throw OperationFailed(state.why, state.fault);
  current.report.peak_bytes = current.meter.peak_bytes();
  return current.report;
}

void ThreadExecutor::cancel(const std::string& why) {
  {
    std::lock_guard guard(state_->mutex);
    if (state_->stopped) return;
    state_->cancelled = true;
    state_->why = why;
    state_->stopped = true;
    state_->stop_waits();
    state_->changed.notify_all();
  }
  if (state_->hooks.stop) state_->hooks.stop();
}

}  // namespace ganymede::worker
