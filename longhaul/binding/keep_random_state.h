#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <mutex>
#include <utility>

namespace longhaul {

// Keeps random numbers that are drawn during its lifetime from affecting training: the destructor restores the state of
// the generator. Use it around code that runs only between some steps and does not influence training, such as an
// evaluation whose loader draws a sample.
//
//   if (step % 1000 == 0) {
//     const lh::KeepRandomState keep;
//     evaluate(net, *test_loader);
//   }
//
// While the object exists, no other thread may draw from the generator.
class KeepRandomState {
 public:
  explicit KeepRandomState(at::Generator generator = at::detail::getDefaultCPUGenerator())
      : generator_(std::move(generator)) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~KeepRandomState() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state_);
  }
  KeepRandomState(const KeepRandomState&) = delete;
  KeepRandomState& operator=(const KeepRandomState&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace longhaul
