#include "common/service/running_context.h"

#include <algorithm>
#include <charconv>

#include "common/base/error.h"
#include "common/cell/exchange_layout.h"
#include "common/cell/layouts.h"
#include "common/os/futex.h"
#include "common/step_protocol/change.h"

namespace ganymede::service {
namespace {

constexpr double keeper_seconds = 10;
constexpr auto look_up_every = std::chrono::milliseconds(20);  // how late a wait may notice that it should give up

config::Config load_for(const JobEpoch& epoch, int rank) {
  config::Config config = config::load(epoch.config, {});
  if (rank < 0 || rank >= config.parallel.ranks) {
    fail_usage("--rank {} is not in the world of this run, 0 to {}.", rank, config.parallel.ranks - 1);
  }
  return config;
}

/// Counts a thread that waits.
struct Waiting {
  explicit Waiting(std::atomic<int>& counter) : counter_(counter) { ++counter_; }
  ~Waiting() { --counter_; }
  std::atomic<int>& counter_;
};

}  // namespace

std::string launcher_endpoint() { return fmt::format("ipc://{}", launcher_socket); }

RunningContext::RunningContext(Kind kind, int rank, std::optional<std::uint64_t> epoch, std::atomic<bool>& finishing)
    : kind_(kind),
      rank_(rank),
      epoch_(epoch),
      finishing_(finishing),
      job_(read_job()),
      first_(job_.first_epoch()),
      config_(load_for(first_, rank)),
      placement_(placement::build(config_, rank, first_.optimizers())),
      layouts_(shm::cell_layouts(config_, placement_, first_.number)),
      keeper_(keeper_socket) {
  control_ = control_of(segment("control"));
  writable_words().planned_ns.store(0, std::memory_order_release);  // of the process before this one
}

/// An epoch is written into job.json before anything of it is made.
RunningContext::Epoch& RunningContext::later_epoch(std::uint64_t number) {
  std::lock_guard lock(epochs_mutex_);
  if (auto found = epochs_.find(number); found != epochs_.end()) return found->second;
  JobEpoch epoch = read_job().epoch(number);
  Epoch made{load_for(epoch, rank_), {}, plugin_hash(epoch.plugins)};
  made.placement = placement::build(made.config, rank_, epoch.optimizers());
  return epochs_.emplace(number, std::move(made)).first->second;
}

const config::Config& RunningContext::config_of(std::uint64_t epoch) {
  return epoch == first_.number ? config_ : later_epoch(epoch).config;
}

const placement::Placement& RunningContext::placement_of(std::uint64_t epoch) {
  return epoch == first_.number ? placement_ : later_epoch(epoch).placement;
}

std::uint64_t RunningContext::optimizer_hash_of(std::uint64_t epoch) {
  return epoch == first_.number ? plugin_hash(first_.plugins) : later_epoch(epoch).optimizer_hash;
}

shm::Layout RunningContext::layout_of(const std::string& wanted) {
  auto named = [&](const shm::Layout& one) { return one.name == wanted; };
  if (auto found = std::ranges::find_if(layouts_, named); found != layouts_.end()) return *found;
  std::uint64_t epoch = 0;
  std::size_t dot = std::min(wanted.rfind('.'), wanted.size());
  std::from_chars(wanted.data() + std::min(dot + 1, wanted.size()), wanted.data() + wanted.size(), epoch);
  if (dot < wanted.size()) {
    auto layouts = shm::epoch_layouts(config_of(epoch), placement_of(epoch), epoch);
    if (auto found = std::ranges::find_if(layouts, named); found != layouts.end()) return *found;
  }
  fail("A cell of this run has no segment \"{}\".", wanted);
}

shm::Segment& RunningContext::segment(const std::string& wanted) {
  std::lock_guard lock(segments_mutex_);
  if (auto found = segments_.find(wanted); found != segments_.end()) return found->second;
  shm::Layout layout = layout_of(wanted);
  os::Fd fd = keeper_.get(shm::held_name(rank_, wanted), Deadline::after_seconds(keeper_seconds));
  return segments_.emplace(wanted, shm::Segment::attach(fd.get(), layout, job_.id)).first->second;
}

void RunningContext::release_epoch(std::uint64_t epoch) {
  std::lock_guard lock(segments_mutex_);
  for (const auto& name :
       {shm::state_name(epoch), shm::side_name(epoch), shm::matrices_name(epoch), shm::pool_name(epoch)})
    segments_.erase(name);
}

std::unique_ptr<msg::Client> RunningContext::launcher_client() {
  std::string identity = fmt::format("{}.{}", stem(kind_, rank_, epoch_.value_or(0)), ++clients_);
  return std::make_unique<msg::Client>(launcher_endpoint(), identity, job_.id);
}

void RunningContext::at(std::uint64_t operation, std::uint64_t bucket, const char* detail) {
  step_protocol::ServiceWords& words = writable_words();
  words.planned_ns.store(0, std::memory_order_release);
  words.operation.store(operation, std::memory_order_release);
  words.bucket.store(bucket, std::memory_order_release);
  auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch());
  words.since_ns.store(static_cast<std::uint64_t>(now.count()), std::memory_order_release);
  words.progress.fetch_add(1, std::memory_order_acq_rel);
  std::lock_guard lock(detail_mutex_);
  detail_ = detail;
}

void RunningContext::plan(const PlannedTime& time) {
  auto nanoseconds = [](double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); };
  step_protocol::ServiceWords& words = writable_words();
  words.planned_cpu_ns.store(nanoseconds(time.cpu_seconds), std::memory_order_release);
  words.planned_ns.store(nanoseconds(time.seconds), std::memory_order_release);
}

bool RunningContext::wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
                          const std::function<bool()>& give_up, Deadline deadline, const char* what) {
  std::uint64_t seen = word.load(std::memory_order_acquire);
  if (ready(seen)) return true;
  Waiting waiting(waiting_);
  while (true) {
    if (finishing() || (give_up && give_up())) return false;
    if (deadline.passed()) {
      fail("{}.{} waited for {} in vain until its deadline (the word of it is {}).", name(kind_), rank_, what, seen);
    }
    os::wait_while_equal(word, seen,
                         Deadline::after(std::min<std::chrono::nanoseconds>(deadline.left(), look_up_every)));
    seen = word.load(std::memory_order_acquire);
    if (ready(seen)) return true;
  }
}

step_protocol::ServiceWords& RunningContext::writable_words() const {
  bool standby = epoch_ && step_protocol::epoch_in_force(*control_.block) != *epoch_;
  return standby ? own_words_ : control_.services[static_cast<int>(kind_)];
}

std::string RunningContext::detail() const {
  std::lock_guard lock(detail_mutex_);
  return detail_;
}

fbs::ServiceState RunningContext::state() const {
  return waiting_.load() > 0 ? fbs::ServiceState::waiting : fbs::ServiceState::running;
}

}  // namespace ganymede::service
