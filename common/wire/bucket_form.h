#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/config/config.h"
#include "common/placement/placement.h"
#include "common/wire/fp8.h"

/// What a bucket looks like on the wire and in segment `working`: a run of bytes that does not depend on who holds
/// what, so that a rank's shard is a part of it, and shards one after another are the whole.
namespace ganymede::wire {

/// Format of a bucket's parameters: of experts and of all others they are configured apart.
config::ParameterWire wire_of(const config::Config& config, model_spec::BucketKind kind);
/// "fp32", "bf16", "fp8".
const char* name(config::ParameterWire wire);

/// fp32, bf16: the flat array, gaps included. fp8: parameter after parameter, each on a multiple of 16 bytes, its rows
/// encoded one after another (fp8.h); gaps take no bytes but those that fill up to the multiple.
class BucketForm {
 public:
  BucketForm(const placement::Bucket& bucket, const std::vector<model_spec::ParameterSpec>& parameters,
             config::ParameterWire wire);

  config::ParameterWire wire() const { return wire_; }
  std::int64_t bytes() const { return bytes_; }  // of the whole bucket

  /// Where the bytes of flat element `element` begin: for fp8 the first of a row or of a parameter, or the end of a
  /// parameter, a gap or the array.
  std::int64_t byte_of(std::int64_t element) const;

  /// Bytes of each member's shard: members + 1 boundaries, as `Communicator::all_gather` takes them.
  const std::vector<std::size_t>& cut() const { return cut_; }
  std::int64_t shard_bytes() const { return byte_of(shard_end_) - byte_of(shard_begin_); }

  /// fp8 only. Encodes the blocks whose last element is one of `begin` … `end` - 1, of this rank's shard. So a caller
  /// that brings new values in runs of any length, in flat order, encodes each block once its last value is there.
  /// `values` and `encoded`: this rank's shard, from its first element and byte on. NonFinite::first is a flat element.
  /// Thread-safe for ranges that do not overlap.
  NonFinite encode(std::int64_t begin, std::int64_t end, const float* values, std::byte* encoded) const;

  /// fp8 only. Decodes flat elements `begin` … `end` - 1, a run of whole rows, into `flat`, the bucket's whole array
  /// (fp32, or bf16 as its bits), gaps as zeros. `encoded` begins with the bytes of `begin`. Thread-safe for ranges
  /// that do not overlap.
  template <class T>
  void decode(std::int64_t begin, std::int64_t end, const std::byte* encoded, T* flat) const;

 private:
  struct Part {
    std::int64_t offset, elements, row_elements, byte;
  };
  /// Calls work(part, first, last) for what of each parameter lies in `begin` … `end` - 1.
  template <class Work>
  void for_parts(std::int64_t begin, std::int64_t end, const Work& work) const;
  const Part& part_at(std::int64_t element) const;

  config::ParameterWire wire_;
  std::vector<Part> parts_;
  std::int64_t elements_ = 0, bytes_ = 0, shard_begin_ = 0, shard_end_ = 0;
  std::vector<std::size_t> cut_;
};

/// Segment `working` of a rank: the shard of each bucket.
struct WorkingForm {
  std::vector<BucketForm> buckets;   // as in Placement::buckets
  std::vector<std::int64_t> offset;  // of each bucket's shard, bytes
  std::int64_t bytes = 0;            // in all, a multiple of 32
};
WorkingForm working_form(const config::Config& config, const placement::Placement& placement);

}  // namespace ganymede::wire
