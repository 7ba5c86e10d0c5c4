#include "common/wire/bucket_form.h"

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::wire {
namespace {

using config::ParameterWire;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t element_bytes(ParameterWire wire) { return wire == ParameterWire::bf16 ? 2 : 4; }

}  // namespace

ParameterWire wire_of(const config::Config& config, model_spec::BucketKind kind) {
  return kind == model_spec::BucketKind::experts ? config.wire.expert_gather : config.wire.dense_gather;
}

const char* name(ParameterWire wire) {
  return wire == ParameterWire::fp8 ? "fp8" : wire == ParameterWire::bf16 ? "bf16" : "fp32";
}

BucketForm::BucketForm(const placement::Bucket& bucket, const std::vector<model_spec::ParameterSpec>& parameters,
                       ParameterWire wire)
    : wire_(wire),
      elements_(bucket.elements),
      shard_begin_(bucket.shard_begin()),
      shard_end_(bucket.shard_begin() + bucket.shard_elements()) {
  for (const placement::PlacedParameter& placed : bucket.parameters) {
    const model_spec::ParameterSpec& parameter = parameters[placed.parameter];
    parts_.push_back({placed.offset, parameter.elements(), parameter.row_elements(), bytes_});
    bytes_ += round_up(parameter.rows() * fp8_row_bytes(parameter.row_elements()), 16);
  }
  if (wire != ParameterWire::fp8) bytes_ = elements_ * element_bytes(wire);
  for (std::int64_t element : bucket.cut) cut_.push_back(static_cast<std::size_t>(byte_of(element)));
}

const BucketForm::Part& BucketForm::part_at(std::int64_t element) const {
  auto next = std::upper_bound(parts_.begin(), parts_.end(), element,
                               [](std::int64_t at, const Part& part) { return at < part.offset; });
  return *std::prev(next);
}

std::int64_t BucketForm::byte_of(std::int64_t element) const {
  if (wire_ != ParameterWire::fp8) return element * element_bytes(wire_);
  if (element == elements_) return bytes_;
  const Part& part = part_at(element);
  std::int64_t inside = std::min(element - part.offset, part.elements);
  GANYMEDE_CHECK(inside % part.row_elements == 0, "element {} of a bucket lies within a row of {}", element,
                 part.row_elements);
  return part.byte + inside / part.row_elements * fp8_row_bytes(part.row_elements);
}

template <class Work>
void BucketForm::for_parts(std::int64_t begin, std::int64_t end, const Work& work) const {
  GANYMEDE_CHECK(wire_ == ParameterWire::fp8, "a bucket that goes as {} is encoded as fp8", name(wire_));
  if (begin >= end) return;
  for (const Part* part = &part_at(begin); part != parts_.data() + parts_.size() && part->offset < end; part++) {
    std::int64_t first = std::max(begin - part->offset, std::int64_t{0});
    std::int64_t last = std::min(end - part->offset, part->elements);
    work(*part, first, std::max(first, last));
  }
}

NonFinite BucketForm::encode(std::int64_t begin, std::int64_t end, const float* values, std::byte* encoded) const {
  NonFinite found;
  std::int64_t shard_byte = byte_of(shard_begin_);
  for_parts(begin, end, [&](const Part& part, std::int64_t first, std::int64_t last) {
    // Blocks, counted through the parameter, that are complete with `element` elements.
    std::int64_t in_row = fp8_blocks(part.row_elements);
    auto complete = [&](std::int64_t element) {
      return element / part.row_elements * in_row + element % part.row_elements / fp8_block;
    };
    std::int64_t from = complete(first), blocks = complete(last) - from;
    if (blocks == 0) return;
    std::int64_t row = from / in_row, block = from % in_row;
    std::int64_t element = part.offset + row * part.row_elements + block * fp8_block;
    std::byte* to = encoded + (part.byte + row * fp8_row_bytes(part.row_elements) - shard_byte);
    NonFinite more = encode_fp8(values + (element - shard_begin_), part.row_elements, block, blocks, to);
    if (found.count == 0 && more.count > 0) found.first = element + more.first;
    found.count += more.count;
  });
  return found;
}

template <class T>
void BucketForm::decode(std::int64_t begin, std::int64_t end, const std::byte* encoded, T* flat) const {
  std::int64_t begin_byte = byte_of(begin);
  for_parts(begin, end, [&](const Part& part, std::int64_t first, std::int64_t last) {
    std::int64_t rows = (last - std::min(first, last)) / part.row_elements;
    decode_fp8(encoded + (byte_of(part.offset + std::min(first, part.elements)) - begin_byte), rows, part.row_elements,
               flat + part.offset + first);
    std::int64_t next = &part == &parts_.back() ? elements_ : (&part + 1)->offset;
    std::int64_t gap = std::max(part.offset + last, begin), gap_end = std::min(next, end);
    if (last >= part.elements && gap < gap_end) std::fill(flat + gap, flat + gap_end, T{0});
  });
}

template void BucketForm::decode(std::int64_t, std::int64_t, const std::byte*, float*) const;
template void BucketForm::decode(std::int64_t, std::int64_t, const std::byte*, std::uint16_t*) const;

WorkingForm working_form(const config::Config& config, const placement::Placement& placement) {
  WorkingForm form;
  for (const placement::Bucket& bucket : placement.buckets) {
    const BucketForm& added = form.buckets.emplace_back(bucket, placement.parameters, wire_of(config, bucket.kind));
    form.offset.push_back(form.bytes);
    bool fp8 = added.wire() == ParameterWire::fp8;
    form.bytes += fp8 ? round_up(added.shard_bytes(), 64)
                      : round_up(bucket.shard_elements(), placement::alignment) * element_bytes(added.wire());
  }
  return form;
}

}  // namespace ganymede::wire
