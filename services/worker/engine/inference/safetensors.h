#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/os/files.h"

namespace ganymede::worker {

/// A mapped safetensors file of fp32 tensors: u64 header size, JSON header, data. Everything in the header is checked
/// (sizes, bounds, shapes, types) before a tensor is handed out.
class Safetensors {
 public:
  /// Throws Error naming the file and what is wrong with it.
  explicit Safetensors(const std::string& path);

  struct Tensor {
    std::vector<std::int64_t> shape;
    std::uint64_t offset = 0;  // bytes in the data part
    std::int64_t elements = 0;
  };
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  /// Copies a tensor's values. Throws Error when there is none of that name and shape.
  void copy(const std::string& name, std::span<const std::int64_t> shape, float* to) const;

 private:
  void read_header();
  [[noreturn]] void wrong(const std::string& what) const;

  std::string path_;
  os::FileMapping file_;
  std::uint64_t data_ = 0;  // offset of the data part
  std::map<std::string, Tensor> tensors_;
};

}  // namespace ganymede::worker
