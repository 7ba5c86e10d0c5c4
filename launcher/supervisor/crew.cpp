#include "launcher/supervisor/crew.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "launcher/keeper/ended_launcher.h"
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
           const os::Machine& machine, std::string programs, std::string run, Terminal& terminal,
           ServiceProcess::Ended ended, const EpochOf& epoch_of, const std::string& root)
    : io_(io),
      config_(config),
      machine_(machine),
      programs_(std::move(programs)),
      run_(std::move(run)),
      ended_(std::move(ended)),
      terminal_(terminal),
      memory_(root),
      watched_(now_seconds()) {
  for (int rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    for (service::Kind kind : all_kinds) {
      bool has_epochs = kind == service::Kind::optimizer && epoch_of;
      services_.push_back(make({kind, rank, has_epochs ? epoch_of(rank) : 0}));
    }
  }
}

os::Command Crew::command_of(const ServiceId& id) const {
  return service_command(id, config_, machine_, programs_, run_, binaries_.of(id.kind, id.rank).now.file);
}

std::unique_ptr<ServiceProcess> Crew::make(const ServiceId& id) {
  return std::make_unique<ServiceProcess>(
      io_, id, command_of(id), RestartPolicy(config_.launch.restart_budget, config_.launch.restart_window_seconds),
      ended_);
}

void Crew::start_all() {
  watched_ = now_seconds();
  if (auto before = keeper::ended_launcher())
    notes_.ended(launcher_process, true, before->cause, before->detect, before->ended);
  for (auto& service : services_) service->start();
}

ServiceProcess& Crew::at(service::Kind kind, int rank) {
  for (auto& service : services_)
    if (service->id().kind == kind && service->id().rank == rank) return *service;
  fail("There is no {} of rank {} here.", service::name(kind), rank);
}

std::vector<ServiceProcess*> Crew::everyone() const {
  std::vector<ServiceProcess*> all;
  for (const auto& service : services_) all.push_back(service.get());
  for (const Standby& one : beside_) all.push_back(one.process.get());
  return all;
}

bool Crew::any_alive() const {
  std::vector<ServiceProcess*> all = everyone();
  return std::any_of(all.begin(), all.end(), [](const auto* service) { return service->alive(); });
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
  for (ServiceProcess* service : everyone()) service->signal(number, why);
}

bool Crew::computes(service::Kind kind) { return kind == service::Kind::worker || kind == service::Kind::data; }

void Crew::end_workers(const std::string& why) {
  for (auto& service : services_) {
    if (!computes(service->id().kind)) continue;
    service->cancel_restart();
    service->signal(SIGKILL, why);
  }
}

void Crew::start_workers() {
  for (auto& service : services_)
    if (computes(service->id().kind) && !service->alive()) service->start();
}

bool Crew::any_worker_alive() const {
  return std::any_of(services_.begin(), services_.end(),
                     [](const auto& service) { return computes(service->id().kind) && service->alive(); });
}

void Crew::ask_for_stacks() {
  for (ServiceProcess* service : everyone())
    if (service->signs.registered) service->signal(SIGUSR1, "");
}

void Crew::cancel_restarts() {
  for (ServiceProcess* service : everyone()) service->cancel_restart();
}

double Crew::checkpoint_grown() const {
  double grown = 0;
  for (const auto& service : services_)
    if (service->id().kind == service::Kind::checkpoint) grown = std::max(grown, service->signs.grown);
  return grown;
}

double Crew::private_bytes() const {
  double sum = 0;
  for (const ServiceProcess* service : everyone())
    if (service->alive()) sum += own_bytes(service->pid());
  return sum;
}

}  // namespace ganymede::launcher
