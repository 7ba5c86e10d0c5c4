#pragma once

#include <ATen/ATen.h>

#include "common/base/error.h"
#include "services/worker/model/matmul.h"

namespace ganymede::worker::model {

/// The rows of a 2-D tensor whose rows are dense, as addresses for the row kernels. Valid while the tensor lives.
struct Rows {
  explicit Rows(const at::Tensor& tensor)
      : element(element_of(tensor)),
        size(static_cast<std::size_t>(tensor.size(1))),
        data_(static_cast<char*>(tensor.data_ptr())),
        bytes_(tensor.stride(0) * tensor.element_size()) {
    GANYMEDE_CHECK(tensor.dim() == 2 && (tensor.stride(1) == 1 || size <= 1), "rows of a tensor are not dense");
  }
  void* operator[](std::int64_t row) const { return data_ + row * bytes_; }

  kernels::Element element;
  std::size_t size;  // elements of a row

 private:
  char* data_;
  std::int64_t bytes_;
};

}  // namespace ganymede::worker::model
