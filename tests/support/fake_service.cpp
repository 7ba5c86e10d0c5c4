#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/os/signals.h"
#include "common/service/planned_times.h"

/// Stands for a service of a cell; see fake_programs.h.
namespace {

using ganymede::service::Context;
using ganymede::service::Kind;

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

/// Fails every generation, as when the ranks cannot reach one another.
void stay_apart(Context& context) {
  std::uint64_t failed = 0;
  while (!context.finishing()) {
    std::uint64_t generation = context.control().block->generation.load();
    if (generation > failed) {
      failed = generation;
      context.launcher_client()->call(
          [&](flatbuffers::FlatBufferBuilder& builder) {
            return ganymede::msg::Message::body(ganymede::fbs::CreateGenerationFailed(
                builder, generation, context.rank(), builder.CreateString("nobody is there")));
          },
          ganymede::Deadline::after_seconds(5));
    }
    pause();
  }
}

/// Does the same again and again, and then, once in a run, stands still in it.
void fall_asleep(Context& context) {
  ganymede::service::RepeatedWork work(context);
  for (int i = 0; i < 10; ++i) {
    work.begin(0, 0, "fake");
    pause();
  }
  std::FILE* first = std::fopen("slept", "wx");
  if (first == nullptr) return;
  std::fclose(first);
  work.begin(0, 0, "fake sleep");
  while (true) ::pause();
}

/// `ganymede-data pack` that takes until it is stopped, when FAKE_PACK says so.
int pack() {
  if (!std::getenv("FAKE_PACK")) return 1;
  ganymede::os::block_signals();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  int number = 0;
  sigwait(&set, &number);
  return 75;
}

void serve(Kind kind, Context& context, const std::string& behaviour) {
  if (behaviour == "fatal") ganymede::fail("the fake fault");
  if (behaviour == "crash") raise(SIGSEGV);
  if (behaviour == "apart") return stay_apart(context);
  if (behaviour == "sleeps") fall_asleep(context);
  if (kind == Kind::optimizer && behaviour != "loading") context.control().block->state_ready.store(1);
  while (behaviour == "stubborn" || !context.finishing()) {
    context.at(0, 0, "fake");
    pause();
  }
}

int play(Kind kind, int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "prepare") {
    std::puts(
        R"({"plugins": [{"name": "adamw", "slots": ["momentum"], "matrices": false, "row_slots": [], "reductions": [],)"
        R"( "updates_matrix": false, "file": "plugins/fake.so", "hash": "00000000000000ff", "version": "1.0"}], "hyper": {}})");
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "inspect") {
    const char* content = std::getenv("FAKE_DATASET");
    std::printf("{\"hash\": \"%s\", \"validation_rows\": 64}\n",
                content ? content : "00112233445566778899aabbccddeeff");
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "check") return 0;
  if (argc > 1 && std::string(argv[1]) == "pack") return pack();
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
