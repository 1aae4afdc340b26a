#include "longhaul/host/queues/random_stream.h"

#include <fmt/format.h>

#include "longhaul/graph/graph.h"
#include "longhaul/host/queues/seed.h"

namespace longhaul {
namespace {

// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
uint64_t mixed(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

constexpr uint64_t kStep = 0x9e3779b97f4a7c15u, kOther = 0xd1b54a32d192ed03u;  // odd: no two draws of a kind are alike

uint64_t seed_of_draw(uint64_t key, int64_t number, uint64_t kind) {
  return mixed(mixed(key ^ kind) + (static_cast<uint64_t>(number) + 1) * kind);
}

uint64_t seed_attr(const Operation& op, const char* name) {
  const int64_t* seed = op.find_attr<int64_t>(name);
  return seed == nullptr ? 0 : static_cast<uint64_t>(*seed);
}

uint64_t key_of(const Operation& op) {
  const uint64_t own = seed_attr(op, "seed") * 31 + seed_attr(op, "seed2");
  const uint64_t of_graph = op.graph().seed();
  if (own == 0 && of_graph == 0) return fresh_seed();
  return mixed(mixed(of_graph) + own * kStep) ^ seed_of_name(op.name());
}

}  // namespace

RandomStream::Draw RandomStream::take_for_step() {
  const int64_t number = taken_.fetch_add(1, std::memory_order_relaxed);
  return {seed_of_draw(key_.load(std::memory_order_relaxed), number, kStep), number};
}

void RandomStream::commit(const Draw& draw) {
  int64_t before = committed_.load(std::memory_order_relaxed);
  while (before <= draw.number && !committed_.compare_exchange_weak(before, draw.number + 1)) {
  }
}

void RandomStream::give_back(const Draw& draw) {
  if (committed_.load() > draw.number) return;
  int64_t after = draw.number + 1;
  taken_.compare_exchange_strong(after, draw.number);
}

RandomStream::Draw RandomStream::take_for_other_run() {
  const int64_t number = others_.fetch_add(1, std::memory_order_relaxed);
  return {seed_of_draw(key_.load(std::memory_order_relaxed), number, kOther), number};
}

RandomStream::State RandomStream::state() const {
  return {key_.load(), committed_.load(), others_.load()};
}

void RandomStream::restore(const State& state) {
  key_ = state.key;
  committed_ = state.steps;
  taken_ = state.steps;
  others_ = state.others;
}

Tensor as_tensor(const RandomStream::State& state) {
  return Tensor::of(std::vector<int64_t>{static_cast<int64_t>(state.key), state.steps, state.others});
}

RandomStream::State random_state_of(const Tensor& tensor) {
  if (tensor.dtype() != kInt64 || tensor.num_elements() != 3) {
    throw InvalidArgumentError(fmt::format("the state of random numbers must be 3 int64 values, not {} of shape {}",
                                           dtype_name(tensor.dtype()), tensor.shape().to_string()));
  }
  const auto numbers = tensor.flat<int64_t>();
  return {.key = static_cast<uint64_t>(numbers[0]), .steps = numbers[1], .others = numbers[2]};
}

std::shared_ptr<RandomStream> random_stream(const Operation& op, ResourceMap& resources) {
  const auto make = [&] { return std::make_shared<RandomStream>(key_of(op)); };
  return std::dynamic_pointer_cast<RandomStream>(resources.find_or_make("random numbers of " + op.name(), make));
}

}  // namespace longhaul
