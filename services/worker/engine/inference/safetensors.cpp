#include "services/worker/engine/inference/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/base/error.h"

namespace ganymede::worker {
namespace {

using nlohmann::json;

constexpr std::uint64_t largest_header = 100'000'000;
constexpr std::int64_t largest_side = std::int64_t{1} << 31;

/// Elements of a shape that is a list of up to two sizes; -1 if it is something else.
std::int64_t elements_of(const json& shape, std::vector<std::int64_t>& sides) {
  if (!shape.is_array() || shape.size() > 2) return -1;
  std::int64_t elements = 1;
  for (const json& side : shape) {
    if (!side.is_number_unsigned() || side.get<std::uint64_t>() > static_cast<std::uint64_t>(largest_side)) return -1;
    sides.push_back(side.get<std::int64_t>());
    elements *= sides.back();
  }
  return elements;
}

}  // namespace

void Safetensors::wrong(const std::string& what) const { fail("{} is no usable safetensors file: {}.", path_, what); }

Safetensors::Safetensors(const std::string& path) : path_(path), file_(path) { read_header(); }

void Safetensors::read_header() {
  std::uint64_t length = 0;
  if (file_.size < 8) wrong("it is shorter than its header");
  std::memcpy(&length, file_.data, 8);
  if (length > largest_header || length > file_.size - 8) wrong("the header's length is beyond the file");
  data_ = 8 + length;
  std::uint64_t data_bytes = file_.size - data_;
  const auto* text = reinterpret_cast<const char*>(file_.data + 8);
  json header = json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) wrong("the header is not a JSON object");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    if (!entry.is_object() || entry.value("dtype", json()) != "F32") wrong(name + " is not of type F32");
    Tensor tensor;
    tensor.elements = elements_of(entry.value("shape", json()), tensor.shape);
    if (tensor.elements < 0) wrong("the shape of " + name + " is not that of a matrix or vector");
    json offsets = entry.value("data_offsets", json());
    bool two =
        offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
    if (!two) wrong(name + " has no data_offsets");
    tensor.offset = offsets[0].get<std::uint64_t>();
    auto end = offsets[1].get<std::uint64_t>();
    bool fits = tensor.offset <= end && end <= data_bytes &&
                end - tensor.offset == static_cast<std::uint64_t>(tensor.elements) * sizeof(float);
    if (!fits) wrong("the data of " + name + " do not lie inside the file");
    tensors_[name] = std::move(tensor);
  }
}

void Safetensors::copy(const std::string& name, std::span<const std::int64_t> shape, float* to) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end()) wrong("it holds no " + name);
  const Tensor& tensor = found->second;
  if (!std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end())) {
    wrong(name + " has another shape than the configuration says");
  }
  std::memcpy(to, file_.data + data_ + tensor.offset, static_cast<std::size_t>(tensor.elements) * sizeof(float));
}

}  // namespace ganymede::worker
