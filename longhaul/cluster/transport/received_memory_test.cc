#include "longhaul/cluster/transport/received_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

constexpr int64_t kFloats = int64_t{1} << 18;  // a MiB

TEST(ReceivedMemory, IsKeptForTheNextTensorOfAboutItsSize) {
  const ReceivedMemory memory;
  const void* first = nullptr;
  {
    Tensor tensor = memory.make(kFloat, {kFloats});
    std::memset(tensor.mutable_data(), 1, tensor.size_bytes());
    first = tensor.data();
    EXPECT_EQ(memory.bytes_kept(), 0u);
  }
  EXPECT_EQ(memory.bytes_kept(), size_t{1} << 20);
  const Tensor large = memory.make(kFloat, {kFloats + 1}), small = memory.make(kFloat, {kFloats / 2});
  EXPECT_NE(large.data(), first);
  EXPECT_NE(small.data(), first);
  const Tensor next = memory.make(kInt32, {kFloats - 100});
  EXPECT_EQ(next.data(), first);
  EXPECT_EQ(memory.bytes_kept(), 0u);
}

TEST(ReceivedMemory, IsLimitedAndTheOldestGoesFirst) {
  const ReceivedMemory memory(/*most_kept=*/size_t{2} << 20);
  std::vector<Tensor> tensors;
  for (int i = 0; i < 3; ++i) tensors.push_back(memory.make(kFloat, {kFloats}));
  const void* const last = tensors[2].data();
  for (Tensor& tensor : tensors) tensor = Tensor();
  EXPECT_EQ(memory.bytes_kept(), size_t{2} << 20);
  EXPECT_EQ(memory.make(kFloat, {kFloats}).data(), last) << "its bytes are in the cache";
}

TEST(ReceivedMemory, OfATensorOutlivesIt) {
  Tensor tensor;
  {
    const ReceivedMemory memory;
    tensor = memory.make(kDouble, {kFloats});
  }
  std::memset(tensor.mutable_data(), 1, tensor.size_bytes());
}

TEST(ReceivedMemory, SmallTensorsTextsAndWhatIsNoTensorAreAsElsewhere) {
  const ReceivedMemory memory;
  memory.make(kFloat, {100});
  EXPECT_EQ(memory.make(kString, {100'000}).num_elements(), 100'000);
  EXPECT_EQ(memory.make(kFloat, {0, kFloats}).num_elements(), 0);
  EXPECT_EQ(memory.bytes_kept(), 0u);
  EXPECT_NE(refusal_of([&] { memory.make(kFloat, {int64_t{1} << 40, int64_t{1} << 40}); }), "");
}

}  // namespace
}  // namespace longhaul
