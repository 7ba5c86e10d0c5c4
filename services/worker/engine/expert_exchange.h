#pragma once

#include <memory>

#include "common/collectives/collectives.h"
#include "services/worker/engine/surroundings.h"
#include "services/worker/model/expert_exchange.h"

namespace ganymede::worker {

/// Between the ranks of an expert group, over its communicator. Used by the exchange lane only.
class GroupExchange : public model::ExpertExchange {
 public:
  /// Both must outlive it.
  GroupExchange(collectives::Communicator& communicator, Surroundings& surroundings)
      : communicator_(communicator), surroundings_(surroundings) {}
  int size() const override { return communicator_.size(); }
  int place() const override { return communicator_.rank(); }
  std::vector<std::int64_t> counts(const std::vector<std::int64_t>& send_counts) override;
  void rows(const at::Tensor& from, const std::vector<std::int64_t>& send_counts, const at::Tensor& to,
            const std::vector<std::int64_t>& receive_counts, model::Way way) override;
  void gather(const at::Tensor& own, const at::Tensor& all) override;
  void sum(const at::Tensor& parts, const at::Tensor& sum) override;

 private:
  collectives::Communicator& communicator_;
  Surroundings& surroundings_;
};

/// Null when `communicator` is: this rank is alone in its expert group.
std::unique_ptr<model::ExpertExchange> make_exchange(collectives::Communicator* communicator,
                                                     Surroundings& surroundings);

}  // namespace ganymede::worker
