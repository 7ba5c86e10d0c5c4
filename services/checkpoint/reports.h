#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/msg/client.h"

namespace ganymede::checkpoint {

/// What the launcher answers to a durable part.
struct Receipt {
  bool complete = false;             // all ranks have reported: the manifest may be committed
  std::vector<std::string> hashes;   // in rank order, when complete
  std::vector<std::uint64_t> bytes;  // in rank order, when complete
  double loss = 0;                   // of the step
};

/// What a checkpoint service tells the launcher; all of it may be repeated. Throws Error when nobody answers.
class Reports {
 public:
  virtual ~Reports() = default;
  /// `rank`: whose part it is, one of the service's replica group.
  virtual Receipt part_durable(std::uint64_t step, int rank, std::uint64_t bytes, const std::string& hash) = 0;
  virtual void committed(std::uint64_t step, std::uint64_t bytes, double seconds) = 0;
  virtual void failed(std::uint64_t step, const std::string& text) = 0;
};

/// By messages to the launcher.
std::unique_ptr<Reports> launcher_reports(std::unique_ptr<msg::Client> client, int rank);

}  // namespace ganymede::checkpoint
