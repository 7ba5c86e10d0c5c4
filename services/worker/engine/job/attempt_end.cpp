#include "services/worker/engine/job/attempt_end.h"

#include "common/base/error.h"

namespace ganymede::worker {

void AttemptEnd::guard(Communicators* communicators, Engine* engine) {
  std::lock_guard lock(mutex_);
  communicators_ = communicators;
  engine_ = engine;
  if (!why_.empty()) end();
}

void AttemptEnd::over(const std::string& why) {
  std::lock_guard lock(mutex_);
  why_ = why;
  end();
}

bool AttemptEnd::is_over() const {
  std::lock_guard lock(mutex_);
  return !why_.empty();
}

void AttemptEnd::end() {
  if (communicators_ != nullptr) communicators_->abort();
  if (engine_ != nullptr) engine_->cancel(why_);
}

namespace {

/// What an operation threw, or the fault itself.
template <class F>
auto with_cause(const std::exception& fault, const F& look) {
  const auto* failed = dynamic_cast<const OperationFailed*>(&fault);
  if (failed == nullptr) return look(fault);
  try {
    std::rethrow_exception(failed->cause());
  } catch (const std::exception& cause) {
    return look(cause);
  } catch (...) {
    return look(fault);
  }
}

}  // namespace

bool mended_by_new_generation(const std::exception& fault) {
  return with_cause(fault, [](const std::exception& cause) {
    return dynamic_cast<const collectives::CollectiveError*>(&cause) != nullptr ||
           dynamic_cast<const Interrupted*>(&cause) != nullptr || dynamic_cast<const Cancelled*>(&cause) != nullptr;
  });
}

std::string first_line(const std::exception& fault) {
  std::string text = fault.what();
  return text.substr(0, text.find('\n'));  // libtorch puts a stack behind it
}

void rethrow_as_error(const std::exception& fault) {
  ExitCode code = with_cause(fault, [](const std::exception& cause) {
    const auto* ours = dynamic_cast<const Error*>(&cause);
    return ours == nullptr ? ExitCode::failed : ours->code();
  });
  throw Error(code, first_line(fault));
}

}  // namespace ganymede::worker
