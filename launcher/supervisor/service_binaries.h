#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/service/service.h"
#include "launcher/coordinator/node_state.h"

namespace ganymede::launcher {

/// Which programs the services of this node run in the place of the installed ones: what a person has ordered with
/// `ganymede ctl RUN restart SERVICE --binary PATH`. It is kept in programs.json of the run directory, so that every
/// later start of the service, also by another launcher, runs the same. A binary is on trial until it has proved
/// itself; one whose processes end before that is given up for the one before. Works in the current folder, in one
/// thread.
class ServiceBinaries {
 public:
  /// What a launcher before this one has written. Throws Error for a damaged file.
  ServiceBinaries();
  /// Forgets everything, as a run that begins does; a sentence when there was something to forget.
  static std::string clear();

  struct Program {
    std::string file, path;  // as in coordinator::ServiceBinary
    /// "programs/ganymede-worker.… (of /home/me/new/ganymede-worker)", or "the installed program".
    std::string describe() const;
  };
  struct State {
    Program now, before;
    bool trial = false;
    int deaths = 0;             // on trial, in this launcher's life
    std::string refusal;        // why the newest one that was ordered is not run; empty: it is
    std::uint64_t refused = 0;  // number of that order
  };
  /// Of a service that was never given another program: all empty.
  State of(service::Kind kind, int rank) const;

  /// Has a service run `binary` from its next start on, on trial. Its file is copied here if it lies elsewhere. Throws
  /// Error(usage), with nothing changed, for one of another protocol, and Error when its file cannot be had.
  void order(service::Kind kind, int rank, const coordinator::ServiceBinary& binary);
  /// Why order `number` was not followed, for whoever asks.
  void refuse(service::Kind kind, int rank, std::uint64_t number, const std::string& why);
  /// The program works: from now on its end is a service's end like any other.
  void prove(service::Kind kind, int rank);
  /// A process of one on trial has ended because of `cause`. After the second one the service goes back to the program
  /// before, and that is what is told; else nothing.
  std::optional<std::string> died(service::Kind kind, int rank, const std::string& cause);

  static constexpr int most_deaths = 2;

 private:
  void write() const;
  void note() const;
  std::map<std::pair<service::Kind, int>, State> states_;
};

/// Throws Error(usage) when a binary of a service cannot work in the run of the current folder.
void require_same_protocol(service::Kind kind, const coordinator::ServiceBinary& binary);

}  // namespace ganymede::launcher
