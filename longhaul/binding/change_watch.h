#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace longhaul {

// Tells whether tensors may have been changed since a moment, without a copy of them. Version counters alone do not:
// SGD and batch norm write past them (through Tensor::data(), in libtorch 1.13). So it also compares a few elements of
// each tensor, and looks at the gradients: an update needs new ones. Gradients that were only set to zero are none.
//
// What was changed counts as changed, unless it was changed past the counters, in few elements, and without a gradient.
// What has new gradients counts as changed, whether they were used or not.
class ChangeWatch {
 public:
  void add(const at::Tensor& tensor);
  void begin();
  bool changed() const;

 private:
  struct Look {
    uint32_t version = 0;
    uint64_t elements = 0;           // a mixture of some
    const void* gradient = nullptr;  // its memory
    uint32_t gradient_version = 0;
  };

  static Look look_at(const at::Tensor& tensor);
  static bool has_new_gradient(const at::Tensor& tensor, const Look& before, const Look& now);

  std::vector<at::Tensor> tensors_;
  std::vector<Look> before_;
};

}  // namespace longhaul
