// longhaul-torch: what libtorch is here, for `longhaul doctor`, which itself starts without it: lines "KEY VALUE".

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <cstdio>

int main() {
  std::printf("version %s\n", TORCH_VERSION);
  std::printf("threads %d for an operation\n", at::get_num_threads());
  std::printf("MKL %s\n", at::hasMKL() ? "yes" : "no");
  std::printf("oneDNN %s\n", at::globalContext().userEnabledMkldnn() && at::hasMKLDNN() ? "yes" : "no");
  std::printf("CUDA %s\n", at::hasCUDA() ? "yes" : "no");
  return std::fflush(stdout) == 0 ? 0 : 1;
}
