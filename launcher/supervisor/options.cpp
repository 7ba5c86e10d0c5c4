#include "launcher/supervisor/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/base/error.h"

namespace ganymede::launcher {

Options parse_options(int argc, char** argv) {
  Options options;
  std::int64_t steps = -1;
  CLI::App app("Starts and watches the services of one node. `ganymede train` runs it.", "ganymede-launcher");
  app.add_option("--run", options.run, "run directory")->required();
  app.add_option("--recipe", options.recipe, "recipe file")->required();
  app.add_option("--from", options.from,
                 "FOLDER or FOLDER@STEP: checkpoint that a new run starts from; STEP: the run's own to go back to");
  app.add_option("--set", options.settings, "a key of the configuration, key=value")->allow_extra_args(false);
  std::vector<std::string> implied;
  app.add_option("--imply", implied, "as --set, behind those; `ganymede train` has made it")->allow_extra_args(false);
  app.add_option("--steps", steps, "steps in total (run.steps)");
  std::string nodes;
  app.add_option("--nodes", nodes, "addresses of all nodes, host:port,host:port,…");
  app.add_option("--node", options.node, "index of this node in --nodes");
  app.add_option("--key", options.key, "file with the coordinator's key");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    fail_usage("{} (see ganymede-launcher --help).", error.what());
  }
  for (const std::string& setting : options.settings) options.said.insert(setting.substr(0, setting.find('=')));
  options.settings.insert(options.settings.end(), implied.begin(), implied.end());
  if (!nodes.empty()) options.nodes = coordinator::parse_nodes(nodes);
  if (options.nodes.size() == 1) options.nodes.clear();
  if (options.node < 0 || options.node >= std::max(1, static_cast<int>(options.nodes.size())))
    fail_usage("--node {}: there are nodes 0 to {} (--nodes).", options.node,
               std::max(1, static_cast<int>(options.nodes.size())) - 1);
  if (steps >= 0) options.settings.push_back("run.steps=" + std::to_string(steps));
  return options;
}

}  // namespace ganymede::launcher
