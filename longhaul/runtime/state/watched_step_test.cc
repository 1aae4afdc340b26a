#include "longhaul/runtime/state/watched_step.h"

#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "longhaul/ops/state_ops.h"

namespace longhaul {
namespace {

TEST(WatchedStep, ThreadsThatOvertakeEachOtherPassEachMarkOnce) {
  constexpr int kThreads = 4, kStepsOfEach = 20000, kEvery = 10;
  Graph graph;
  Scope root(graph);
  const Variable step = ops::create_global_step(root);
  VariableStore store;
  VariableSlot& slot = *store.slot("global_step");
  slot.assign(Value(at::zeros({}, at::kLong)));
  std::atomic<int> passed{0};
  WatchedStep watched({.step = step, .every = kEvery, .passed = [&] { ++passed; }}, store);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kStepsOfEach; ++i) {
        slot.update([](const at::Tensor& from, at::Tensor& to) { at::add_out(to, from, at::ones({}, at::kLong)); });
        watched.look();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, kThreads * kStepsOfEach / kEvery);
}

}  // namespace
}  // namespace longhaul
