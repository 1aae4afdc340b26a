#include "longhaul/runtime/aten/draw_generator.h"

#include <ATen/CPUGeneratorImpl.h>

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

}  // namespace

void seed_for_draw(uint64_t seed, at::Generator& generator) {
  if (!generator.defined()) generator = at::detail::createCPUGenerator();
  auto* cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
  at::mt19937 engine = cpu->engine();
  engine.set_data(twister_state(seed));
  cpu->set_engine(engine);
  cpu->set_next_float_normal_sample(c10::nullopt);
  cpu->set_next_double_normal_sample(c10::nullopt);
}

}  // namespace longhaul
