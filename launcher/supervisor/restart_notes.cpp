#include "launcher/supervisor/restart_notes.h"

namespace ganymede::launcher {

void RestartNotes::ended(const std::string& process, bool worker, const std::string& cause, double detect, double now) {
  back(process, now);  // a replacement that ended before it was there
  std::uint64_t number = coordinator::event_number();
  if (!events_.empty()) number = std::max(number, events_.back().number + 1);
  events_.push_back({.number = number, .process = process, .worker = worker, .cause = cause, .detect = detect});
  if (events_.size() > coordinator::RestartBook::kept) events_.erase(events_.begin());
  away_[process] = {number, now};
}

void RestartNotes::back(const std::string& process, double now) {
  auto away = away_.find(process);
  if (away == away_.end()) return;
  for (auto& event : events_)
    if (event.number == away->second.number) event.restart = now - away->second.since;
  away_.erase(away);
}

}  // namespace ganymede::launcher
