#include "longhaul/binding/keep_random_state.h"

#include <mutex>

#include "longhaul/binding/devices/default_generators.h"

namespace longhaul {
namespace {

std::pair<at::Generator, at::Tensor> with_state(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  at::Tensor state = generator.get_state();
  return {std::move(generator), std::move(state)};
}

}  // namespace

KeepRandomState::KeepRandomState() {
  for (at::Generator& generator : default_generators_in_use()) states_.push_back(with_state(std::move(generator)));
}

KeepRandomState::KeepRandomState(at::Generator generator) {
  states_.push_back(with_state(std::move(generator)));
}

KeepRandomState::~KeepRandomState() {
  for (auto& [generator, state] : states_) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace longhaul
