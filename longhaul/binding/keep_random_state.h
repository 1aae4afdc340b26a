#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace longhaul {

// Keeps random numbers that are drawn during its lifetime from affecting training: the destructor restores the states
// of libtorch's default generators, on the CPU and on the devices of the modules that were bound so far. Use it around
// code that runs only between some steps and does not influence training, such as an evaluation whose loader draws a
// sample.
//
//   if (step % 1000 == 0) {
//     const lh::KeepRandomState keep;
//     evaluate(net, *test_loader);
//   }
//
// While the object exists, no other thread may draw from these generators.
class KeepRandomState {
 public:
  KeepRandomState();
  explicit KeepRandomState(at::Generator generator);  // of this one alone
  ~KeepRandomState();
  KeepRandomState(const KeepRandomState&) = delete;
  KeepRandomState& operator=(const KeepRandomState&) = delete;

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

}  // namespace longhaul
