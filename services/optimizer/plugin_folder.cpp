#include "services/optimizer/plugin_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/os/files.h"
#include "common/os/process.h"
#include "common/service/run_directory.h"
#include "services/optimizer/plugin_guard.h"

namespace ganymede::optimizer {

namespace fs = std::filesystem;

std::string default_plugin_folder() { return os::program_folder() + "/plugins"; }

std::vector<std::string> available_plugins(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    if (entry.path().extension() == ".so") names.push_back(entry.path().stem().string());
  }
  if (problem)
    fail_usage("the plugin folder {} (optimizer.plugin_folder) cannot be read: {}", folder, problem.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::string find_plugin(const std::string& folder, const std::string& name, const std::string& key) {
  // Plugins come from the configured folder and from nowhere else.
  bool plain = !name.empty() && name.find('/') == std::string::npos && name[0] != '.';
  std::vector<std::string> names = available_plugins(folder);
  if (plain && std::find(names.begin(), names.end(), name) != names.end()) return fmt::format("{}/{}.so", folder, name);
  std::string list = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  std::string near = nearest(name, names);
  fail_usage("There is no optimizer plugin '{}' ({}) in {}: available are {}{}", name, key, folder, list,
             near.empty() || names.size() == 1 ? "." : fmt::format("; did you mean '{}'?", near));
}

namespace {

/// A fault names the file that a person gave, and its copy does not stay.
Plugin load_copy(const std::string& copy, const std::string& original) {
  InPlugin in_plugin(original);
  try {
    return load_plugin(copy);
  } catch (const Error& error) {
    fs::remove(copy);
    std::string text = error.what();
    for (std::size_t at = text.find(copy); at != std::string::npos; at = text.find(copy, at + original.size()))
      text.replace(at, copy.size(), original);
    throw Error(error.code(), text);
  }
}

}  // namespace

PreparedPlugin prepare_plugin(const std::string& folder, const std::string& name, const std::string& run,
                              const std::string& key) {
  std::string original = find_plugin(folder, name, key);
  std::string content = os::read_file(original);
  std::uint64_t hash = hash64(std::string_view(content));
  PreparedPlugin prepared;
  prepared.name = name;
  prepared.original = original;
  prepared.path = fmt::format("{}/{}.{:016x}.so", service::plugin_folder, name, hash);
  std::string copy = fmt::format("{}/{}", run, prepared.path);
  os::make_private_folder(fmt::format("{}/{}", run, service::plugin_folder));
  if (!fs::exists(copy) || hash64(std::string_view(os::read_file(copy))) != hash) {
    os::write_file_atomically(copy, content);
  }
  prepared.plugin = load_copy(copy, original);
  return prepared;
}

}  // namespace ganymede::optimizer
