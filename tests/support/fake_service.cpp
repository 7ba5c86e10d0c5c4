#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/service/service.h"

/// Stands for a service of a cell; see fake_programs.h.
namespace {

using ganymede::service::Context;
using ganymede::service::Kind;

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

void serve(Kind kind, Context& context, const std::string& behaviour) {
  if (behaviour == "fatal") ganymede::fail("the fake fault");
  if (behaviour == "crash") raise(SIGSEGV);
  if (kind == Kind::optimizer && behaviour != "loading") context.control().block->state_ready.store(1);
  while (behaviour == "stubborn" || !context.finishing()) {
    context.at(0, 0, "fake");
    pause();
  }
}

int play(Kind kind, int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "prepare") {
    std::puts(R"({"slots": ["momentum"], "plugin": "plugins/fake.so", "hash": "00000000000000ff"})");
    return 0;
  }
  const char* told = std::getenv(("FAKE_" + upper(ganymede::service::name(kind))).c_str());
  std::string behaviour = told ? told : "serve";
  if (behaviour == "die" || behaviour == "usage") {
    std::puts("the fake dies");
    return behaviour == "die" ? 3 : 2;
  }
  while (behaviour == "deaf") pause();
  return ganymede::service::run(kind, argc, argv, [&](Context& context) { serve(kind, context, behaviour); });
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = std::filesystem::path(argv[0]).filename().string();
  for (Kind kind : {Kind::worker, Kind::optimizer, Kind::data, Kind::checkpoint})
    if (name == std::string("ganymede-") + ganymede::service::name(kind)) return play(kind, argc, argv);
  return 2;
}
