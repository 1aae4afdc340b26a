#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace longhaul {

// Tensors of modules that have other memory for a while (AveragedWeights), process-wide. Any thread.

// From now on `tensor` has the memory of `other`, for each pair; or, if they are given back, their own again.
void lend_memory(const std::vector<std::pair<at::Tensor, at::Tensor>>& tensors_and_others);
void give_back_memory(const std::vector<at::Tensor>& tensors);

bool any_is_lent();
bool is_lent(const at::Tensor& tensor);
// The tensor with its own memory, in which training has its value.
at::Tensor own_memory_of(const at::Tensor& tensor);

}  // namespace longhaul
