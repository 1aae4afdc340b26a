// What the operation that restores gives on: all tensors of one read, in memory that variables keep.
#include <gmock/gmock.h>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/kernels/kernel.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kCount = 300'001;

class RestoreKernel : public ::testing::Test {
 protected:
  RestoreKernel() {
    BundleWriter writer(FileSystem::real(), prefix_);
    writer.add("large", Tensor::of<float>(std::vector<float>(kCount, 2.5f)));
    writer.add("small", Tensor::of<int64_t>({7, 8}));
    writer.add("strings", Tensor::of<std::string>({"a", "b"}));
    writer.finish();
  }

  // The values of an operation that restores these.
  std::vector<Value> restore(const std::vector<std::string>& names, const std::vector<DType>& dtypes,
                             std::vector<std::string> slice_specs = {}) {
    slice_specs.resize(names.size());
    const Output prefix = ops::constant(root_, Tensor::scalar(prefix_));
    const Output name = ops::constant(root_, Tensor::of(names));
    const Output slices = ops::constant(root_, Tensor::of(slice_specs));
    const Operation op = root_.add("RestoreV2", "restore", {prefix, name, slices}, {{"dtypes", dtypes}});
    std::vector<Value> slots{Value(Tensor::scalar(prefix_)), Value(Tensor::of(names)), Value(Tensor::of(slice_specs))};
    slots.resize(3 + names.size());
    const std::vector<int> inputs{0, 1, 2};
    KernelContext context(op, inputs, inputs, {}, 3, slots, resources_);
    find_kernel("RestoreV2")->run(context);
    return {slots.begin() + 3, slots.end()};
  }

  testing::TemporaryDirectory directory_;
  const std::string prefix_ = directory_.file("model");
  Graph graph_;
  Scope root_{graph_};
  SessionState resources_;
};

TEST_F(RestoreKernel, ASliceIsOfATensorOfTheShapeThatItNames) {
  EXPECT_EQ(restore({"small"}, {kInt64}, {"2 1,1"})[0].shape(), Shape({1}));
  try {
    restore({"small"}, {kInt64}, {"3 1,1"});
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("small in " + prefix_ +
                                        " has shape [2], but a slice of a tensor of shape [3] was requested"));
  }
}

TEST_F(RestoreKernel, AVariableTakesWhatWasReadWithoutACopy) {
  std::vector<Value> values = restore({"large", "small"}, {kFloat, kInt64});
  for (Value& value : values) {
    const void* read = value.tensor.data_ptr();
    EXPECT_TRUE(VariableSlot::exclusive(value.tensor));
    VariableSlot& slot = *resources_.variables().slot(value.shape().to_string());
    EXPECT_EQ(slot.assign(std::move(value)).tensor.data_ptr(), read);
  }
  EXPECT_EQ(
      reinterpret_cast<uintptr_t>(resources_.variables().slot(Shape{kCount}.to_string())->read().tensor.data_ptr()) %
          VariableMemory::kAlignment,
      0u);
}

TEST_F(RestoreKernel, GivesWhatWasSaved) {
  const std::vector<Value> values = restore({"strings", "small", "large"}, {kString, kInt64, kFloat});
  EXPECT_TRUE(identical(values[0].to_host(), Tensor::of<std::string>({"a", "b"})));
  EXPECT_TRUE(identical(values[1].to_host(), Tensor::of<int64_t>({7, 8})));
  EXPECT_TRUE(identical(values[2].to_host(), Tensor::of<float>(std::vector<float>(kCount, 2.5f))));
}

TEST_F(RestoreKernel, AnotherDtypeIsRefusedByName) {
  EXPECT_THAT([&] { restore({"large", "small"}, {kFloat, kFloat}); },
              ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("small in " + prefix_ + " has the original")));
}

}  // namespace
}  // namespace longhaul
