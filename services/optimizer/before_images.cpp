#include "services/optimizer/before_images.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "common/base/barrier.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/futex.h"
#include "common/step_protocol/snapshot_machine.h"

namespace ganymede::optimizer {

namespace sp = step_protocol;

BeforeImages::BeforeImages(const placement::Placement& placement, const CellMemory& memory, double wait_seconds,
                           std::function<void()> waits)
    : placement_(placement), memory_(memory), wait_seconds_(wait_seconds), waits_(std::move(waits)) {
  std::size_t image = (1 + memory.state.size()) * placement::chunk_elements;
  held_.assign(memory.images.size() / image, -1);
}

bool BeforeImages::protect(std::int64_t chunk, const std::function<bool()>& finishing) {
  int bucket = placement_.chunks[static_cast<std::size_t>(chunk)].bucket;
  if (bucket != bucket_) bucket_waited_seconds_ = 0;
  bucket_ = bucket;
  Deadline deadline = Deadline::after_seconds(wait_seconds_ - bucket_waited_seconds_);
  auto began = Clock::now();
  bool go_on = true, waited = false;
  while (true) {
    std::uint64_t word = memory_.control->snapshot.load(std::memory_order_acquire);
    std::uint64_t mark = memory_.read_marks[chunk].load(std::memory_order_acquire);
    std::uint64_t flag = memory_.image_flags[chunk].load(std::memory_order_acquire);
    if (!sp::needs_image(word, mark, flag) || save(sp::snapshot_step(word), chunk)) break;
    go_on = !finishing();
    if (!go_on) break;
    if (deadline.passed()) {
      cancel(word);
      break;
    }
    if (!waited) waits_();
    waited = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (waited) {
    double seconds = seconds_since(began);
    waited_seconds_ += seconds;
    bucket_waited_seconds_ += seconds;
  }
  return go_on;
}

void BeforeImages::report(std::uint64_t step) {
  bucket_ = -1;
  if (waited_seconds_ == 0) return;
  log::warn("the update of step {} waited {:.3f} s for the checkpoint service to read: raise checkpoint.side_fraction",
            step, waited_seconds_);
  waited_seconds_ = 0;
}

void BeforeImages::cancel(std::uint64_t word) const {
  std::uint64_t step = sp::snapshot_step(word);
  if (!memory_.control->snapshot.compare_exchange_strong(word, sp::ended_word(step))) return;
  os::wake(memory_.control->snapshot);
  log::warn(
      "the snapshot of step {} was cancelled: the update of one bucket waited {} s for the checkpoint service to free "
      "some of its {} side slots; raise checkpoint.side_fraction or look for a slow disk",
      step, wait_seconds_, held_.size());
}

void BeforeImages::follow(std::uint64_t step) {
  if (step == step_) return;
  step_ = step;
  next_ = 0;
  std::fill(held_.begin(), held_.end(), -1);
  for (std::size_t chunk = 0; chunk < memory_.image_flags.size(); chunk++) {
    std::uint64_t flag = memory_.image_flags[chunk].load(std::memory_order_acquire);
    bool read = memory_.read_marks[chunk].load(std::memory_order_acquire) == step;
    if (read || !sp::image_taken(flag, step)) continue;
    GANYMEDE_CHECK(sp::image_slot(flag) < held_.size(), "chunk {} claims side slot {} of {}", chunk,
                   sp::image_slot(flag), held_.size());
    held_[sp::image_slot(flag)] = static_cast<std::int64_t>(chunk);
  }
}

bool BeforeImages::save(std::uint64_t step, std::int64_t chunk) {
  follow(step);
  auto free = [&](std::size_t slot) {
    return held_[slot] < 0 || memory_.read_marks[held_[slot]].load(std::memory_order_acquire) == step;
  };
  std::size_t looked = 0;
  while (looked < held_.size() && !free(next_)) next_ = (next_ + 1) % held_.size(), looked++;
  if (looked == held_.size()) return false;
  const placement::Chunk& range = placement_.chunks[chunk];
  float* image = memory_.images.data() + next_ * (1 + memory_.state.size()) * placement::chunk_elements;
  std::copy_n(memory_.master.data() + range.shard_offset, range.count, image);
  for (std::size_t i = 0; i < placement_.slots_of(range.parameter); i++) {
    image += placement::chunk_elements;
    placement::StateRun run = placement_.state_run(range, i);
    std::copy_n(memory_.state[i].data() + run.offset, run.count, image);
  }
  held_[next_] = chunk;
  memory_.image_flags[chunk].store(sp::image_flag_word(step, next_), std::memory_order_release);
  // The flag must be seen before any store of the overwrite that follows (rule 19); a release store alone does not
  // order what comes after it.
  full_barrier();
  next_ = (next_ + 1) % held_.size();
  return true;
}

}  // namespace ganymede::optimizer
