#pragma once

#include "common/collectives/collectives.h"
#include "services/worker/engine/surroundings.h"
#include "services/worker/model/tensors.h"

namespace ganymede::worker {

/// Dispatch and combine between the ranks of an expert group, over a communicator of its own; alone in the group
/// (`communicator` null) everything stays. Used by the compute lane only.
class GroupExchange : public model::ExpertExchange {
 public:
  GroupExchange(collectives::Communicator* communicator, Surroundings& surroundings)
      : communicator_(communicator), surroundings_(surroundings) {}
  int size() const override { return communicator_ == nullptr ? 1 : communicator_->size(); }
  int place() const override { return communicator_ == nullptr ? 0 : communicator_->rank(); }
  std::vector<std::int64_t> counts(const std::vector<std::int64_t>& send_counts) override;
  at::Tensor rows(const at::Tensor& rows, const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override;

 private:
  collectives::Communicator* communicator_;
  Surroundings& surroundings_;
};

}  // namespace ganymede::worker
