#include "longhaul/runtime/memory/variable_memory.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "longhaul/runtime/state/variable_store.h"

namespace longhaul {
namespace {

constexpr int64_t kBytes = 1 << 20;

bool is_aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % VariableMemory::kAlignment == 0;
}

bool is_aligned(const at::Tensor& tensor) {
  return is_aligned(tensor.data_ptr());
}

const auto never = [] { return false; };

TEST(VariableMemory, BuffersBeginAtAPageAndSmallTensorsAreLibtorchs) {
  const VariableMemory memory;
  for (int64_t count : {4096, 4097, 100000, 3 << 20}) {
    const at::Tensor tensor = memory.make({count}, at::kFloat);
    EXPECT_TRUE(is_aligned(tensor)) << count;
    EXPECT_TRUE(memory.accepts(tensor)) << count;
    EXPECT_TRUE(tensor.is_contiguous());
    EXPECT_EQ(tensor.fill_(1).sum().item<double>(), static_cast<double>(count));
  }
  EXPECT_EQ(memory.bytes_beyond(), 0u) << "all were dropped";
  EXPECT_TRUE(memory.accepts(memory.make({3}, at::kFloat)));
  EXPECT_FALSE(memory.accepts(at::empty({4096}, at::kFloat)));
  EXPECT_FALSE(memory.accepts(VariableMemory().make({4096}, at::kFloat))) << "another session's";
}

TEST(VariableMemory, ABufferIsNotFreeWhileAViewOfItIsHeld) {
  const VariableMemory memory;
  memory.add_keeper();
  const at::Tensor variable = memory.make({kBytes}, at::kByte);
  memory.replaced({}, variable);
  at::Tensor other = memory.make({kBytes}, at::kByte).fill_(7);
  const void* place = other.data_ptr();
  at::Tensor view = other.slice(0, 10, 20).view({2, 5});
  other.reset();
  EXPECT_EQ(memory.bytes_free(), 0u);
  EXPECT_EQ(memory.bytes_beyond(), static_cast<uint64_t>(kBytes));
  EXPECT_NE(memory.make({kBytes}, at::kByte).data_ptr(), place);
  EXPECT_EQ(view.sum().item<int64_t>(), 70);
  view.reset();
  EXPECT_EQ(memory.bytes_free(), static_cast<uint64_t>(kBytes)) << "one variable of this size, so one free buffer";
}

TEST(VariableMemory, WhatIsFreeServesTheNextOfItsSize) {
  const VariableMemory memory;
  memory.add_keeper();
  const at::Tensor variable = memory.make({kBytes}, at::kByte);
  memory.replaced({}, variable);
  const void* place = memory.make({kBytes}, at::kByte).data_ptr();
  EXPECT_NE(memory.make({2 * kBytes}, at::kByte).data_ptr(), place);
  EXPECT_EQ(memory.make({kBytes / 4}, at::kFloat).data_ptr(), place);
}

TEST(VariableMemory, WithoutAKeeperLittleIsKept) {
  constexpr int64_t kLarge = 48 << 20;
  const VariableMemory memory;
  std::vector<at::Tensor> variables;
  for (int i = 0; i < 2; ++i) {
    variables.push_back(memory.make({kLarge}, at::kByte));
    memory.replaced({}, variables.back());
  }
  const auto copy_both = [&] {
    const at::Tensor one = memory.make({kLarge}, at::kByte), other = memory.make({kLarge}, at::kByte);
  };
  copy_both();
  EXPECT_EQ(memory.bytes_free(), static_cast<uint64_t>(kLarge));
  memory.add_keeper();
  copy_both();
  EXPECT_EQ(memory.bytes_free(), static_cast<uint64_t>(2 * kLarge));
  memory.remove_keeper();
  EXPECT_EQ(memory.bytes_free(), static_cast<uint64_t>(kLarge)) << "the last keeper gives the rest back";
  for (at::Tensor& variable : variables) {
    memory.replaced(variable, {});
    variable.reset();
  }
  EXPECT_EQ(memory.bytes_free(), 0u) << "no variables, no buffers";
}

TEST(VariableMemory, ALimitCountsWhatIsHeldAndWhatIsFree) {
  const VariableMemory memory(kBytes);
  memory.add_keeper();
  const at::Tensor a = memory.make({kBytes}, at::kByte), b = memory.make({kBytes}, at::kByte);
  memory.replaced({}, a);
  memory.replaced({}, b);
  memory.prepare(never);
  EXPECT_EQ(memory.bytes_free(), static_cast<uint64_t>(kBytes));
  const at::Tensor held = memory.make({kBytes}, at::kByte);
  memory.prepare(never);
  EXPECT_EQ(memory.bytes_free(), 0u);
}

TEST(VariableMemory, WhatIsHeldOfOneSizeLeavesLessForAnother) {
  const VariableMemory memory(2 * kBytes);
  memory.add_keeper();
  const at::Tensor a = memory.make({kBytes}, at::kByte), b = memory.make({2 * kBytes}, at::kByte);
  memory.replaced({}, a);
  memory.replaced({}, b);
  memory.make({kBytes}, at::kByte).reset();
  EXPECT_EQ(memory.bytes_free(), static_cast<uint64_t>(kBytes));
  const at::Tensor held = memory.make({2 * kBytes}, at::kByte);
  EXPECT_EQ(memory.bytes_free(), 0u);
}

TEST(VariableMemory, IsPreparedWithoutPageFaultsLater) {
#ifdef _GLIBCXX_TSAN
  GTEST_SKIP() << "the sanitizer has page faults of its own";
#endif
  constexpr int64_t kMany = 64 << 20;
  const auto faults = [] {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
  };
  const VariableMemory memory;
  memory.add_keeper();
  const at::Tensor variable = memory.make({kMany}, at::kByte);
  memory.replaced({}, variable);
  memory.prepare(never);
  EXPECT_EQ(memory.bytes_free(), static_cast<uint64_t>(kMany));
  for (int i = 0; i < 3; ++i) {
    const int64_t before = faults();
    const at::Tensor copy = memory.make({kMany}, at::kByte);
    std::memset(copy.data_ptr(), i, kMany);
    EXPECT_LT(faults() - before, kMany / 4096 / 10);
  }
}

TEST(VariableMemory, StopsPreparingWhenItIsTold) {
  const VariableMemory memory;
  memory.add_keeper();
  const at::Tensor variable = memory.make({kBytes}, at::kByte);
  memory.replaced({}, variable);
  memory.prepare([] { return true; });
  EXPECT_EQ(memory.bytes_free(), 0u);
}

TEST(VariableMemory, BuffersOutliveTheHandle) {
  at::Tensor tensor;
  {
    const VariableMemory memory;
    tensor = memory.make({kBytes}, at::kByte).fill_(3);
  }
  EXPECT_EQ(tensor.sum().item<int64_t>(), 3 * kBytes);
}

TEST(VariableMemory, ThreadsTakeAndDropAtOnce) {
  const VariableMemory memory;
  memory.add_keeper();
  std::vector<at::Tensor> variables;
  for (int i = 0; i < 4; ++i) {
    variables.push_back(memory.make({kBytes}, at::kByte));
    memory.replaced({}, variables.back());
  }
  std::atomic<int> mixed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const at::Tensor mine = memory.make({kBytes}, at::kByte);
        std::memset(mine.data_ptr(), t, 4096);
        if (static_cast<const char*>(mine.data_ptr())[4095] != t) ++mixed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_EQ(memory.bytes_beyond(), 4u * kBytes - memory.bytes_of_variables());
  EXPECT_LE(memory.bytes_free(), 4u * kBytes);
}

// A variable of kBytes; what it holds is looked at through read().
class VariableSlotTest : public ::testing::Test {
 protected:
  const void* place() { return slot_.read().tensor.data_ptr(); }

  VariableStore store_;
  VariableSlot& slot_ = *store_.slot("v");
};

TEST_F(VariableSlotTest, IsAlignedAfterEveryWayOfAssigning) {
  const auto values = at::arange(1 << 18, at::kFloat);
  slot_.assign(Value(values.clone()));  // nobody else's, of libtorch
  EXPECT_TRUE(is_aligned(place()));
  slot_.assign(Value(values));  // somebody else's
  EXPECT_TRUE(is_aligned(place()));
  slot_.assign(Value(values.view({512, 512}).t()));  // not contiguous, and another shape
  EXPECT_TRUE(is_aligned(place()));
  EXPECT_TRUE(slot_.read().tensor.equal(values.view({512, 512}).t()));
  slot_.assign(Value(to_aten(Tensor(kFloat, {1 << 18}))));  // of the program
  EXPECT_TRUE(is_aligned(place()));
  slot_.assign(Value(at::cat({values, values}).slice(0, 1000, 1000 + (1 << 18))));  // a part of something
  EXPECT_TRUE(is_aligned(place()));
  slot_.update([](const at::Tensor& from, at::Tensor& to) { at::add_out(to, from, at::ones({}), 1); });
  EXPECT_TRUE(is_aligned(place()));
  const at::Tensor held = slot_.read().tensor;
  slot_.update([](const at::Tensor& from, at::Tensor& to) { at::add_out(to, from, at::ones({}), 1); });
  EXPECT_NE(place(), held.data_ptr());
  EXPECT_TRUE(is_aligned(place()));
  EXPECT_EQ(slot_.read().tensor[0].item<float>(), 1002);
  EXPECT_EQ(held[0].item<float>(), 1001);
}

TEST_F(VariableSlotTest, TakesABufferOfItsSessionAsItIs) {
  at::Tensor buffer = store_.memory().make({kBytes}, at::kByte);
  const void* wanted = buffer.data_ptr();
  Value value(to_tensor(buffer));  // as a restored tensor comes
  buffer.reset();
  slot_.assign(std::move(value));
  EXPECT_EQ(place(), wanted);
  EXPECT_EQ(store_.memory().bytes_of_variables(), static_cast<uint64_t>(kBytes));
  EXPECT_EQ(store_.memory().bytes_beyond(), 0u);
}

TEST_F(VariableSlotTest, IsAssignedInPlaceWhileNobodyHoldsItsBuffer) {
  slot_.assign(Value(at::ones({kBytes}, at::kByte)));
  const void* before = place();
  slot_.assign(Value(at::zeros({kBytes}, at::kByte)));
  EXPECT_EQ(place(), before);
  const at::Tensor held = slot_.read().tensor;
  slot_.assign(Value(at::ones({kBytes}, at::kByte)));
  EXPECT_NE(place(), before);
  EXPECT_EQ(held.sum().item<int64_t>(), 0);
  EXPECT_EQ(store_.memory().bytes_beyond(), static_cast<uint64_t>(kBytes)) << "the one that is held";
}

}  // namespace
}  // namespace longhaul
