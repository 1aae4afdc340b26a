#include "longhaul/data/batch_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace longhaul {
namespace {

TEST(BatchMemory, GivesAlignedTensors) {
  const BatchMemory memory;
  const Tensor tensor = memory.make(kFloat, {3, 5});
  EXPECT_EQ(tensor.dtype(), kFloat);
  EXPECT_EQ(tensor.shape(), (Shape{3, 5}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 64, 0u);
}

TEST(BatchMemory, IsUsedAgainOnceNobodyHasIt) {
  const BatchMemory memory;
  Tensor first = memory.make(kFloat, {1000});
  const Tensor handle = first;
  const void* bytes = first.data();
  first = {};
  EXPECT_NE(memory.make(kFloat, {1000}).data(), bytes);
  first = memory.make(kFloat, {1000});
  const void* second = first.data();
  first = {};
  EXPECT_EQ(memory.make(kInt32, {10, 100}).data(), second);
}

TEST(BatchMemory, OutlivesItself) {
  Tensor tensor;
  {
    const BatchMemory memory;
    tensor = memory.make(kInt64, {100});
  }
  for (int64_t& value : tensor.mutable_flat<int64_t>()) value = 1;
  EXPECT_EQ(tensor.flat<int64_t>()[99], 1);
}

TEST(BatchMemory, KeepsNoMoreThanWasInUseAtOneTime) {
  const BatchMemory memory;
  memory.make(kUInt8, {6000});
  memory.make(kUInt8, {5000});  // in use alone; once it is free, the first is too much
  EXPECT_EQ(memory.bytes_free(), 5000);
}

TEST(BatchMemory, HasStringsAndRefusesWhatNoTensorCanBe) {
  const BatchMemory memory;
  EXPECT_EQ(memory.make(kString, {2}).flat<std::string>()[1], "");
  EXPECT_THROW(memory.make(kFloat, {-1}), InvalidArgumentError);
  EXPECT_THROW(memory.make(kFloat, {int64_t{1} << 40, int64_t{1} << 40}), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
