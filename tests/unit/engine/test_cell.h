#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "common/service/service.h"
#include "tests/support/builtin_facts.h"

namespace ganymede::worker {

/// The segments of one cell in this process, and the parts of the other services that a step needs: batches that are
/// there at once and an AdamW update that a test calls.
class TestCell : public service::Context {
 public:
  TestCell(const config::Config& config, int rank,
           const std::vector<placement::OptimizerFacts>& facts = builtin_facts());

  const config::Config& config() const override { return config_; }
  const placement::Placement& placement() const override { return placement_; }
  int rank() const override { return placement_.rank; }
  std::uint64_t job() const override { return 1; }
  service::Control& control() override { return control_; }
  /// Of the first state epoch.
  service::EpochControl& epoch() { return epoch_; }
  shm::Segment& segment(const std::string& name) override { return *segments_.at(name); }
  std::unique_ptr<msg::Client> launcher_client() override;
  bool finishing() const override { return false; }
  void at(std::uint64_t operation, std::uint64_t bucket, const char* detail) override;
  bool wait(const step_protocol::Word& word, const std::function<bool(std::uint64_t)>& ready,
            const std::function<bool()>& give_up, Deadline deadline, const char* what) override;

  /// Fills the batch slot of a step.
  void serve(std::uint64_t step);
  void serve_validation();
  /// What the optimizer server does after a decision: AdamW with the record's factors, working copy, commit.
  void update(std::uint64_t step);
  /// fp32 values of every owned range, for comparisons between worlds: parameter name → (first element → values).
  std::span<float> master() { return segment("master").span<float>("values"); }
  std::span<float> gradients() { return segment("gradients").span<float>("values"); }
  void publish_working_copy(std::uint64_t step);
  /// Takes back the counts of the update of `step`, as if none of its chunks were done; what it wrote stays.
  void unpublish(std::uint64_t step);
  /// Counts the next chunk of the update of `step`, and publishes its bucket with the last one of it.
  void publish_chunk(std::uint64_t step);
  /// How often, since `unpublish`, the worker had to wait for a word.
  int waits() const { return waits_; }
  /// `chunks_done` when the worker first said, since `unpublish`, that it is in an operation of this kind; `never`: it
  /// has not.
  std::uint64_t chunks_done_at_first(plan::OperationKind kind) const { return first_[static_cast<std::size_t>(kind)]; }

 protected:
  void make_segments(const std::vector<shm::Layout>& layouts);

 private:
  void fill_row(const std::string& prefix, std::size_t place, std::uint64_t row);

  config::Config config_;
  placement::Placement placement_;
  std::map<std::string, std::unique_ptr<shm::Segment>> segments_;
  service::Control control_;
  service::EpochControl epoch_;
  std::array<std::atomic<std::uint64_t>, plan::operation_kinds> first_;  // chunks done, by kind
  std::atomic<int> waits_ = 0;
};

/// A configuration that trains in milliseconds: 3 layers (1 dense), 4 experts, 12 rows of 24 tokens.
config::Config tiny_config();

}  // namespace ganymede::worker
