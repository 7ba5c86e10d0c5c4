#pragma once

#include <memory>

#include "common/collectives/collectives.h"
#include "services/worker/engine/surroundings.h"
#include "services/worker/model/tensors.h"

namespace ganymede::worker {

/// A rank alone in its expert group: everything stays.
class LocalExchange : public model::ExpertExchange {
 public:
  int size() const override { return 1; }
  int place() const override { return 0; }
  std::vector<std::int64_t> counts(const std::vector<std::int64_t>& send_counts) override { return send_counts; }
  at::Tensor rows(const at::Tensor& rows, const std::vector<std::int64_t>&, const std::vector<std::int64_t>&) override {
    return rows;
  }
};

/// Dispatch and combine between the ranks of an expert group. Used by the compute lane only.
class GroupExchange : public model::ExpertExchange {
 public:
  /// Both must outlive it.
  GroupExchange(collectives::Communicator& communicator, Surroundings& surroundings)
      : communicator_(communicator), surroundings_(surroundings) {}
  int size() const override { return communicator_.size(); }
  int place() const override { return communicator_.rank(); }
  std::vector<std::int64_t> counts(const std::vector<std::int64_t>& send_counts) override;
  at::Tensor rows(const at::Tensor& rows, const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override;

 private:
  collectives::Communicator& communicator_;
  Surroundings& surroundings_;
};

/// The one that fits: `communicator` is null when this rank is alone in its expert group.
std::unique_ptr<model::ExpertExchange> make_exchange(collectives::Communicator* communicator,
                                                     Surroundings& surroundings);

}  // namespace ganymede::worker
