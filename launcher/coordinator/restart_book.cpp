#include "launcher/coordinator/restart_book.h"

#include <algorithm>
#include <chrono>

namespace ganymede::coordinator {

std::uint64_t event_number() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void RestartBook::take(int node, const RestartEvent& event, double now, std::uint64_t decided,
                       std::uint64_t generation) {
  auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.event.node == node && entry.event.number == event.number;
  });
  if (known == entries_.end()) {
    bool forgotten = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.event.node == node && entry.event.number > event.number;
    });
    if (forgotten) return;
    Entry entry{.event = event};
    entry.event.restart.reset();
    entry.event.node = node;
    entry.event.step = decided;
    entry.event.generation = event.worker ? generation : 0;
    entries_.push_back(std::move(entry));
    if (entries_.size() > kept) entries_.pop_front();
    known = std::prev(entries_.end());
  }
  if (!event.restart || known->event.restart) return;
  known->event.restart = event.restart;
  known->back = now;
}

void RestartBook::watch(double now, std::uint64_t formed, std::uint64_t decided) {
  for (Entry& entry : entries_) {
    RestartEvent& event = entry.event;
    if (!event.restart || event.redo) continue;
    if (!event.reform && (!event.worker || formed >= event.generation)) {
      event.reform = event.worker ? now - entry.back : 0;
      entry.formed = now;
    }
    if (event.reform && decided > event.step) event.redo = now - entry.formed;
  }
}

bool RestartBook::open() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.event.redo; });
}

std::vector<RestartEvent> RestartBook::take_finished() {
  std::vector<RestartEvent> finished;
  for (Entry& entry : entries_) {
    if (!entry.event.redo || entry.given) continue;
    entry.given = true;
    finished.push_back(entry.event);
  }
  return finished;
}

std::vector<RestartEvent> RestartBook::newest() const {
  std::vector<RestartEvent> events;
  for (const Entry& entry : entries_) events.push_back(entry.event);
  return events;
}

}  // namespace ganymede::coordinator
