#pragma once

#include <functional>
#include <string>

/// The code of a plugin runs when it is loaded: it may loop, crash, or end the program.
namespace ganymede::optimizer {

struct GuardLimit {
  double seconds = 50;      // for all that is done
  std::string longer = {};  // how a person gives it more time, " …"; empty: in no way
};

/// Runs `body` in a process of its own, and returns the exit code that it returned. Throws Error when it is not done in
/// time, or was ended by something else, naming the plugin whose code ran (InPlugin). For programs with one thread.
int guarded(const GuardLimit& limit, const std::function<int()>& body);

/// The same for what answers with a text: returns it.
std::string guarded_text(const GuardLimit& limit, const std::function<std::string()>& body);

/// While one lives, the code of the plugin in `file` runs. Of several the first counts. Does nothing in a process that
/// nobody guards.
class InPlugin {
 public:
  explicit InPlugin(const std::string& file);
  ~InPlugin();
  InPlugin(const InPlugin&) = delete;
  InPlugin& operator=(const InPlugin&) = delete;

 private:
  bool counts_ = false;
};

}  // namespace ganymede::optimizer
