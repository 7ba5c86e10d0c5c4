#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ganymede::cli {

/// What `config` is asked for.
struct ConfigRequest {
  std::string recipe;                 // empty: standard values
  std::string prefix;                 // of the keys to show: "wire", "optimizer.lr"; empty: all
  std::vector<std::string> settings;  // "key=value"
};

/// Keys with their values, standard values, what is allowed and what they are for: a table a section, or JSON
/// [{"key", "type", "value", "standard", "allowed", "help"}]. Throws Error(usage) as config::load does, and for a
/// prefix that no key has.
std::string config_text(const ConfigRequest& request);
std::string config_json(const ConfigRequest& request);

/// Adds `config` to the command line.
void add_config(CLI::App& app);

}  // namespace ganymede::cli
