#include "launcher/supervisor/crew.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "launcher/supervisor/service_command.h"

namespace ganymede::launcher {
namespace {

/// Pages that only this process has (resident minus shared), 0 when it is gone.
double own_bytes(int pid) {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid));
  double size = 0, resident = 0, shared = 0;
  statm >> size >> resident >> shared;
  return std::max(0.0, resident - shared) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Crew::Crew(boost::asio::io_context& io, const config::Config& config, coordinator::RankRange ranks,
           const os::Machine& machine, const std::string& programs, const std::string& run, Terminal& terminal,
           const ServiceProcess::Ended& ended, const std::string& root)
    : config_(config), terminal_(terminal), memory_(root), watched_(now_seconds()) {
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    for (service::Kind kind : all_kinds) {
      ServiceId id{kind, rank};
      services_.push_back(std::make_unique<ServiceProcess>(
          io, id, service_command(id, config, machine, programs, run),
          RestartPolicy(config.launch.restart_budget, config.launch.restart_window_seconds), ended));
    }
  }
}

void Crew::start_all() {
  watched_ = now_seconds();
  for (auto& service : services_) service->start();
}

ServiceProcess& Crew::at(service::Kind kind, int rank) {
  for (auto& service : services_)
    if (service->id() == ServiceId{kind, rank}) return *service;
  fail("There is no {} of rank {} here.", service::name(kind), rank);
}

bool Crew::any_alive() const {
  return std::any_of(services_.begin(), services_.end(), [](const auto& service) { return service->alive(); });
}

bool Crew::all_running() const {
  return std::all_of(services_.begin(), services_.end(),
                     [](const auto& service) { return service->phase == ServicePhase::running || service->finished; });
}

bool Crew::workers_finished() const {
  return std::all_of(services_.begin(), services_.end(), [](const auto& service) {
    return service->id().kind != service::Kind::worker || service->finished;
  });
}

int Crew::restarts() const {
  int sum = 0;
  for (const auto& service : services_) sum += service->restarts;
  return sum;
}

void Crew::signal_all(int number, const std::string& why) {
  for (auto& service : services_) service->signal(number, why);
}

void Crew::cancel_restarts() {
  for (auto& service : services_) service->cancel_restart();
}

double Crew::private_bytes() const {
  double sum = 0;
  for (const auto& service : services_)
    if (service->alive()) sum += own_bytes(service->pid());
  return sum;
}

}  // namespace ganymede::launcher
