#include "services/worker/engine/expert_exchange.h"

#include <numeric>

namespace ganymede::worker {
namespace {

/// Boundaries in bytes of parts of `counts[i]` rows.
std::vector<std::size_t> boundaries(const std::vector<std::int64_t>& counts, std::size_t row_bytes) {
  std::vector<std::size_t> offsets(counts.size() + 1, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    offsets[i + 1] = offsets[i] + static_cast<std::size_t>(counts[i]) * row_bytes;
  }
  return offsets;
}

}  // namespace

std::vector<std::int64_t> GroupExchange::counts(const std::vector<std::int64_t>& send_counts) {
  std::vector<std::int64_t> received(send_counts.size());
  std::vector<std::size_t> offsets = boundaries(std::vector<std::int64_t>(send_counts.size(), 1), sizeof(std::int64_t));
  surroundings_.wait(communicator_.all_to_all(std::as_bytes(std::span(send_counts)), offsets,
                                              std::as_writable_bytes(std::span(received)), offsets,
                                              {"experts", "counts"}));
  return received;
}

at::Tensor GroupExchange::rows(const at::Tensor& rows, const std::vector<std::int64_t>& send_counts,
                               const std::vector<std::int64_t>& receive_counts) {
  std::int64_t total = std::accumulate(receive_counts.begin(), receive_counts.end(), std::int64_t{0});
  at::Tensor received = at::empty({total, rows.size(1)}, rows.options());
  auto row_bytes = static_cast<std::size_t>(rows.size(1) * rows.element_size());
  surroundings_.wait(communicator_.all_to_all(
      {static_cast<const std::byte*>(rows.data_ptr()), rows.nbytes()}, boundaries(send_counts, row_bytes),
      {static_cast<std::byte*>(received.data_ptr()), received.nbytes()}, boundaries(receive_counts, row_bytes),
      {"experts", rows.scalar_type() == at::kBFloat16 ? "bf16"
                  : rows.scalar_type() == at::kFloat  ? "fp32"
                                                      : "indices"}));
  return received;
}

std::unique_ptr<model::ExpertExchange> make_exchange(collectives::Communicator* communicator,
                                                     Surroundings& surroundings) {
  if (communicator == nullptr) return std::make_unique<LocalExchange>();
  return std::make_unique<GroupExchange>(*communicator, surroundings);
}

}  // namespace ganymede::worker
