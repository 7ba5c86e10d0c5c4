#include "common/placement/buckets.h"

#include "common/base/error.h"

namespace ganymede::placement {
namespace {

using model_spec::BucketKind;
using model_spec::ParameterSpec;

std::string bucket_name(const ParameterSpec& parameter) {
  switch (parameter.bucket) {
    case BucketKind::embed:
      return "embed";
    case BucketKind::dense:
      return fmt::format("layer.{}.dense", parameter.layer);
    case BucketKind::experts:
      return fmt::format("layer.{}.experts", parameter.layer);
    case BucketKind::head:
      return "head";
  }
  impossible(__FILE__, __LINE__, "unknown kind of bucket");
}

}  // namespace

std::vector<Bucket> fill_buckets(const std::vector<ParameterSpec>& parameters, const ExpertRange& experts) {
  std::vector<Bucket> buckets;
  for (int i = 0; i < static_cast<int>(parameters.size()); i++) {
    const ParameterSpec& parameter = parameters[i];
    int local = parameter.expert - experts.first;
    if (parameter.expert >= 0 && (local < 0 || local >= experts.count)) continue;
    std::string name = bucket_name(parameter);
    if (buckets.empty() || buckets.back().name != name) {
      buckets.emplace_back();
      buckets.back().name = name;
      buckets.back().kind = parameter.bucket;
      buckets.back().layer = parameter.layer;
    }
    Bucket& bucket = buckets.back();
    bucket.parameters.push_back({i, bucket.elements});
    bool joined = parameter.expert >= 0 && parameter.name.ends_with(".gate_proj.weight");  // with the up projection
    bucket.elements += joined ? parameter.elements() : aligned(parameter.elements());
  }
  return buckets;
}

}  // namespace ganymede::placement
