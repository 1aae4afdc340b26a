#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace torch::nn {
class Module;
}

// Accelerators without hardware, for tests: libtorch's tensors, streams, events and autograd work on them as they do on
// a GPU, and show what code that was only tried on the CPU takes for granted.
//
// - The addresses of its memory are such that the host cannot touch them: reading `data_ptr` ends the process.
// - A stream runs nothing before somebody waits for it, and then no more than that: without the event or the wait that
//   it needs, code gets wrong data in each run, not in one of a thousand.
// - Memory that was not written, or is freed, has all bits set: NaN, or -1.
// - The kernels are those of the CPU, with its generator, so results are the same bytes; after
//   draw_from_own_generators(), with one of the device.
//
// Not imitated: the speed of anything. Any thread may call anything here.
namespace longhaul::fake_device {

// Makes libtorch know `devices` such devices, as `privateuseone:0` and so on. To be called before the process uses
// autograd for the first time; a later call changes nothing.
void install(int devices = 2);

c10::Device device(int index = 0);

// Moves the module's parameters and buffers, as `Module::to` does for devices that libtorch has by itself; the module's
// tensors remain the same objects.
void move(const torch::nn::Module& module, c10::Device to);

// Since reset().
struct Counts {
  int64_t operators = 0;   // those that were launched
  int64_t host_waits = 0;  // how often the host waited: a synchronisation, a number that it read, a copy to its memory
  int64_t copies_to_host = 0;
  int64_t copies_to_device = 0;
};
Counts counts();

// Each device's kernels draw from its default_generator() until reset(), as on a GPU.
void draw_from_own_generators();
at::Generator default_generator(c10::Device device);

// Host memory to which a copy with `non_blocking` is enqueued. A copy to other host memory waits.
at::Tensor pinned_memory(at::IntArrayRef sizes, at::ScalarType dtype);

// Memory that tensors have now, in all devices.
int64_t allocated_bytes();

// The n-th allocation from now on throws c10::OutOfMemoryError; 1 is the next one.
void fail_allocation(int64_t n);

// As after an error of a kernel: whoever waits for a device from now on gets c10::Error with this reason.
void lose(const std::string& reason);

// Runs all that is enqueued, forgets faults and counts. Kernels draw from the CPU's generator again.
void reset();

}  // namespace longhaul::fake_device
