#pragma once

#include <string>
#include <vector>

#include "services/optimizer/plugin.h"
#include "services/optimizer/update_engine.h"
#include "tests/perf/optimizer/large_cell.h"

namespace ganymede::optimizer {

/// What is measured on one large cell with AdamW, by name. All work is shared by `threads` threads.
class Measures {
 public:
  Measures(int millions, int threads);

  /// Bytes that one element moves from and to memory in an update: gradient, master and two moments are read; master,
  /// moments and bf16 are written.
  static constexpr int update_bytes = 30;

  std::size_t elements() const { return cell_.elements(); }
  /// Seconds of one run of: "copy" (a loop that reads and writes as many bytes as an update), "streamed_copy" (with
  /// stores past the caches), "update" (a step of the engine), "in_place" (the same arithmetic written straight into
  /// master, state and working copy: no redo area, no seal, no shared chunk), "unpublished" (that without a working
  /// copy), "publishing_pass" (the working copy from the master alone), "whole" (norm for clipping, a step of the
  /// engine, gradients cleared). Throws Error for another name.
  double run(const std::string& name);

 private:
  template <class Work>
  void in_threads(const Work& work, std::size_t count);
  void copy(bool streamed);
  void step(double clip_factor);
  void in_place(bool published);
  void publishing_pass();
  void whole();
  void update_in_place(const placement::Chunk& chunk, bool published);
  double gradient_norm();

  int threads_;
  LargeCell cell_;
  Plugin plugin_;
  UpdateEngine engine_;
  PageVector<float> copied_from_, copied_to_;
};

}  // namespace ganymede::optimizer
