#include "services/worker/engine/expert_exchange.h"

namespace ganymede::worker {
namespace {

std::size_t row_bytes(const at::Tensor& rows) { return static_cast<std::size_t>(rows.size(1) * rows.element_size()); }

/// Boundaries in bytes of parts of `counts[i]` rows.
std::vector<std::size_t> boundaries(const std::vector<std::int64_t>& counts, std::size_t row_bytes) {
  std::vector<std::size_t> offsets(counts.size() + 1, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    offsets[i + 1] = offsets[i] + static_cast<std::size_t>(counts[i]) * row_bytes;
  }
  return offsets;
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

/// The bucket of a cargo names the way here: all of it belongs to the experts (Communicators::traffic).
collectives::Cargo cargo(const at::Tensor& rows, model::Way way) {
  const char* wire = rows.scalar_type() == at::kBFloat16 ? "bf16"
                     : rows.scalar_type() == at::kFloat  ? "fp32"
                                                         : "choices";
  return {way == model::Way::there ? "dispatch" : "combine", wire};
}

}  // namespace

std::vector<std::int64_t> GroupExchange::counts(const std::vector<std::int64_t>& send_counts) {
  std::vector<std::int64_t> received(send_counts.size());
  std::vector<std::size_t> offsets = boundaries(std::vector<std::int64_t>(send_counts.size(), 1), sizeof(std::int64_t));
  surroundings_.wait(communicator_.all_to_all(std::as_bytes(std::span(send_counts)), offsets,
                                              std::as_writable_bytes(std::span(received)), offsets,
                                              {"dispatch", "counts"}));
  return received;
}

void GroupExchange::rows(const at::Tensor& from, const std::vector<std::int64_t>& send_counts, const at::Tensor& to,
                         const std::vector<std::int64_t>& receive_counts, model::Way way) {
  surroundings_.wait(communicator_.all_to_all(bytes_of(from), boundaries(send_counts, row_bytes(from)), bytes_of(to),
                                              boundaries(receive_counts, row_bytes(to)), cargo(from, way)));
}

void GroupExchange::gather(const at::Tensor& own, const at::Tensor& all) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), own.size(0));
  surroundings_.wait(communicator_.all_gather(bytes_of(own), bytes_of(all), boundaries(counts, row_bytes(own)),
                                              cargo(own, model::Way::there)));
}

void GroupExchange::sum(const at::Tensor& parts, const at::Tensor& sum) {
  std::vector<std::int64_t> cut;
  for (int place = 0; place <= size(); ++place) cut.push_back(place * sum.numel());
  auto element = parts.scalar_type() == at::kBFloat16 ? collectives::Element::bf16 : collectives::Element::fp32;
  surroundings_.wait(communicator_.all_to_all_sum(bytes_of(parts), element, cut,
                                                  {sum.data_ptr<float>(), static_cast<std::size_t>(sum.numel())},
                                                  cargo(parts, model::Way::back)));
}

std::unique_ptr<model::ExpertExchange> make_exchange(collectives::Communicator* communicator,
                                                     Surroundings& surroundings) {
  if (communicator == nullptr) return nullptr;
  return std::make_unique<GroupExchange>(*communicator, surroundings);
}

}  // namespace ganymede::worker
