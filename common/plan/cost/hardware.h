#pragma once

#include <string>

#include "common/config/config.h"

/// What a machine can do and hold, as far as a step depends on it: read from configs/hardware/*.toml.
namespace ganymede::plan {

struct Hardware {
  std::string name = "hardware";
  struct Compute {
    double fp32_gflops = 100, bf16_gflops = 100;  // peak of matrix products of one device, 1e9 operations a second
    double product_efficiency = 0.5;              // share of it that large products reach
    double expert_efficiency = 0.5;               // share that products of experts reach, whose rows are few
    double attention_efficiency = 0.3;            // share that attention reaches
    bool shared = false;                          // the ranks of a node share one device
    double operation_us = 0;                      // fixed cost of an operation of the plan
    int multiprocessors = 0;                      // of one device; 0: collectives take nothing from computation
  } compute;
  struct Memory {
    double device_gb_per_second = 100;  // where the worker computes
    double host_gb_per_second = 100;    // where master, gradients and optimizer state lie
    bool shared = false;                // the ranks of a node share both
    double device_gib = 0;              // what a device has; 0: not said
    double host_gib_per_node = 0;       // what a node has beside its devices, all ranks together; 0: not said
  } memory;
  struct HostLink {
    double gb_per_second = 0;  // between the device and host memory, a direction; 0: they are the same memory
    double latency_us = 0;
  } host_link;
  struct Link {
    double gb_per_second = 10;  // of one rank, a direction
    double latency_us = 10;
    bool shared = false;  // the ranks of a node share it
  };
  Link node, network;  // inside a node, between nodes
  struct Collectives {
    int ctas = 0;                  // that a communicator takes which nothing caps; 0: none
    double cta_gb_per_second = 0;  // that each of them moves, a direction; 0: the link alone bounds the rate
  } collectives;
};

/// Reads a hardware file. Throws Error(usage) as config::load does: file, line, key, value, and the nearest known key;
/// and when rates or efficiencies are missing, naming them.
Hardware load_hardware(const std::string& file);

}  // namespace ganymede::plan
