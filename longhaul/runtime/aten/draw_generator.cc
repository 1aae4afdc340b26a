#include "longhaul/runtime/aten/draw_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/runtime/devices/device_generator.h"

namespace longhaul {
namespace {

// SplitMix64 (host/queues/random_stream.cc), whose outputs become the state of libtorch's Mersenne Twister: libtorch
// itself fills it from 32 bits of the seed, so that two of some ten thousand draws would be alike.
at::mt19937_data_pod twister_state(uint64_t seed) {
  at::mt19937_data_pod state{.seed_ = seed, .left_ = 1, .seeded_ = true, .next_ = 0, .state_ = {}};
  for (size_t i = 0; i < state.state_.size(); i += 2) {
    uint64_t bits = seed + (i / 2 + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    state.state_[i] = static_cast<uint32_t>(bits);
    state.state_[i + 1] = static_cast<uint32_t>(bits >> 32);
  }
  return state;
}

at::Generator new_generator(c10::Device device) {
  if (device.is_cpu()) return at::detail::createCPUGenerator();
  const at::Generator of_device = default_generator_of(device);
  if (of_device.defined()) return of_device.clone();
  throw UnimplementedError(
      fmt::format("libtorch knows no random numbers on {}: place the operation on /cpu:0", device.str()));
}

void seed_twister(uint64_t seed, at::CPUGeneratorImpl& generator) {
  at::mt19937 engine = generator.engine();
  engine.set_data(twister_state(seed));
  generator.set_engine(engine);
  generator.set_next_float_normal_sample(c10::nullopt);
  generator.set_next_double_normal_sample(c10::nullopt);
}

}  // namespace

void seed_for_draw(uint64_t seed, c10::Device device, at::Generator& generator) {
  if (!generator.defined()) generator = new_generator(device);
  if (generator.device().is_cpu()) {
    seed_twister(seed, *at::check_generator<at::CPUGeneratorImpl>(generator));
  } else {
    generator.set_current_seed(seed);
  }
}

}  // namespace longhaul
