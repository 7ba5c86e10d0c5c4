#include "services/data/data_service.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "common/cell/layouts.h"
#include "common/os/futex.h"
#include "services/data/serving.h"
#include "tests/unit/data/workspace.h"

namespace ganymede::data {
namespace {

constexpr std::uint64_t job_id = 5;

/// A cell without launcher and keeper: segments of its own, a control block in plain memory.
class LonelyCell final : public service::Context {
 public:
  LonelyCell(const config::Config& config, int rank)
      : config_(config), placement_(placement::build(config, rank)), batches_(make_batches()) {
    control_.block = &block_;
    control_.services = services_;
    for (auto& word : batches_.span<step_protocol::Word>("words")) word = step_protocol::never;
    batches_.span<step_protocol::Word>("validation_words")[0] = step_protocol::never;
  }
  const config::Config& config() const override { return config_; }
  const placement::Placement& placement() const override { return placement_; }
  int rank() const override { return placement_.rank; }
  std::uint64_t job() const override { return job_id; }
  service::Control& control() override { return control_; }
  shm::Segment& segment(const std::string&) override { return batches_; }
  std::unique_ptr<msg::Client> launcher_client() override { return nullptr; }
  bool finishing() const override { return finish; }
  void at(std::uint64_t, std::uint64_t, const char*) override { ++progress; }
  bool wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
            const std::function<bool()>& give_up, Deadline deadline, const char*) override {
    while (!ready(word.load())) {
      if (finish || give_up()) return false;
      if (deadline.passed()) throw Error(ExitCode::failed, "deadline");
      os::wait_while_equal(word, word.load(), Deadline::after(std::chrono::milliseconds(5)));
    }
    return true;
  }
  void decide(std::uint64_t step) { os::store_and_wake(block_.decided_step, step); }
  /// Waits until the slot of `step` holds it.
  void expect_batch(std::uint64_t step) {
    auto words = batches_.span<step_protocol::Word>("words");
    Deadline deadline = Deadline::after_seconds(30);
    auto& word = words[step % words.size()];
    while (word != step && !deadline.passed()) os::wait_while_equal(word, word, Deadline::after_seconds(0.02));
    EXPECT_EQ(word, step);
  }

  std::atomic<bool> finish{false};
  std::atomic<int> progress{0};

 private:
  shm::Segment make_batches() {
    shm::Layout layout = shm::batches_layout(config_, placement_);
    os::Fd fd(memfd_create("batches", MFD_CLOEXEC));
    if (ftruncate(fd.get(), static_cast<off_t>(layout.size)) != 0) throw std::runtime_error("no memory");
    return shm::Segment::create(fd.get(), layout, job_id);
  }
  config::Config config_;
  placement::Placement placement_;
  shm::Segment batches_;
  step_protocol::ControlBlock block_{};
  std::vector<step_protocol::ServiceWords> services_{4};
  service::Control control_;
};

class DataService : public Workspace {
 protected:
  DataService() {
    write_documents(120);
    pack(options());
    config.data.path = path("set");
    config.data.seq_len = 32;
    config.run.steps = 12;
    config.validation.every_steps = 5;
    config.validation.rows = 4;
    config.parallel.ranks = 2;
  }
  std::string hash() const { return Dataset(path("set")).meta().hash(); }
  config::Config config;
};

TEST_F(DataService, ServesBatchesAheadOfTheDecidedStepUntilItIsToldToFinish) {
  LonelyCell cell(config, 1);
  cell.decide(3);  // the run goes on from a checkpoint
  std::thread server([&] { serve(cell, hash()); });
  for (std::uint64_t step = 4; step <= 12; ++step) {
    cell.expect_batch(step);
    cell.decide(step);
  }
  auto header = cell.segment("batches").span<std::uint64_t>("header");
  for (std::size_t slot = 0; slot < 4; ++slot) EXPECT_EQ(header[slot * header_words + 2], 2u) << "rows of this rank";
  EXPECT_EQ(cell.segment("batches").span<step_protocol::Word>("validation_words")[0], validation_published);
  EXPECT_GT(cell.progress, 4);
  cell.finish = true;
  server.join();
}

TEST_F(DataService, UsesFewerValidationRowsWhenThereAreFewer) {
  config.validation.rows = 100'000;
  LonelyCell cell(config, 0);
  cell.finish = true;
  serve(cell, hash());
  Dataset dataset(config.data.path);
  auto header = cell.segment("batches").span<std::uint64_t>("validation_header");
  EXPECT_EQ(header[2], dataset.meta().validation_rows);
}

TEST_F(DataService, RefusesAnotherContentThanTheRunWasStartedWith) {
  LonelyCell cell(config, 0);
  cell.finish = true;
  Error error = error_of([&] { serve(cell, "00112233445566778899aabbccddeeff"); });
  EXPECT_EQ(error.code(), ExitCode::usage);
  EXPECT_NE(std::string(error.what()).find(hash()), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("put the old dataset back"), std::string::npos);
}

TEST_F(DataService, RefusesARunThatItsDatasetDoesNotFit) {
  auto refused = [this](const config::Config& wrong) {
    LonelyCell cell(wrong, 0);
    Error error = error_of([&] { serve(cell, hash()); });
    EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
    expect_one_sentence(error);
  };
  config::Config wrong = config;
  wrong.data.seq_len = 16;
  refused(wrong);
  wrong = config;
  wrong.data.path = path("nothing");
  refused(wrong);
  wrong = config;
  wrong.data.rows_per_step = 100'000;
  refused(wrong);
  PackOptions none = options();
  none.validation_fraction = 0;
  none.to = path("none");
  pack(none);
  wrong = config;
  wrong.data.path = path("none");
  refused(wrong);
}

}  // namespace
}  // namespace ganymede::data
