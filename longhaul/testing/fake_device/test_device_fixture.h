#pragma once

#include <c10/core/Device.h>

namespace torch::nn {
class Module;
}

namespace longhaul {

// Where modules and tensors of a test's program are: the CPU, or, if LONGHAUL_TEST_DEVICE is "fake", a fake device. So
// one test is two: TensorOptions are made of it, as in `torch::randn({16, 4}, test_device())`.
c10::Device test_device();

void move_to_test_device(const torch::nn::Module& module);

}  // namespace longhaul
