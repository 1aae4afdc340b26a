// The least that a program with libtorch does: it is loaded, makes a tensor, and ends.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

int main() {
  return at::zeros({1}).item<float>() == 0 ? 0 : 1;
}
