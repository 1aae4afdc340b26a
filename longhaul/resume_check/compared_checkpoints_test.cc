#include "longhaul/resume_check/compared_checkpoints.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ComparedCheckpointsTest : public ::testing::Test {
 protected:
  using Tensors = std::map<std::string, Tensor>;

  CheckpointComparison compare(const Tensors& a, const Tensors& b) {
    write("a", a);
    write("b", b);
    return compare_checkpoints(FileSystem::real(), directory_.file("a"), directory_.file("b"));
  }
  std::string only_difference(const Tensor& a, const Tensor& b) {
    const CheckpointComparison comparison = compare({{"w", a}}, {{"w", b}});
    return comparison.different.size() == 1 ? comparison.different[0].how : "";
  }

 private:
  void write(const std::string& name, const Tensors& tensors) {
    BundleWriter writer(FileSystem::real(), directory_.file(name));
    for (const auto& [key, value] : tensors) writer.add(key, value);
    writer.finish();
  }
  const testing::TemporaryDirectory directory_;
};

TEST_F(ComparedCheckpointsTest, TheSameBitsAreTheSame) {
  const Tensors tensors{{"a", Tensor::of<float>({NAN, 1})}, {"b", Tensor::scalar("text")}};
  const CheckpointComparison comparison = compare(tensors, tensors);
  EXPECT_TRUE(comparison.is_same());
  EXPECT_THAT(comparison.names, ElementsAre("a", "b"));
}

TEST_F(ComparedCheckpointsTest, NamesTheLargestDifferenceAndItsPlace) {
  EXPECT_EQ(
      only_difference(Tensor::of<float>(Shape{2, 2}, {1, 2, 3, 4}), Tensor::of<float>(Shape{2, 2}, {1, 2.5, 3, 6})),
      "2 of 4 elements differ, at most by 2: [1,1] is 4 and 6");
  EXPECT_EQ(only_difference(Tensor::of<float>({0, 1}), Tensor::of<float>({-0.0f, 1})),
            "1 of 2 elements differ, at most by 0: [0] is 0 and -0");
  EXPECT_EQ(only_difference(Tensor::of<double>({NAN, 1}), Tensor::of<double>({7, 100})),
            "2 of 2 elements differ, at most by inf: [0] is nan and 7");
}

TEST_F(ComparedCheckpointsTest, NamesWhatIsNoNumber) {
  EXPECT_THAT(only_difference(Tensor::scalar("a"), Tensor::scalar("b")), HasSubstr("\"a\""));
  EXPECT_THAT(only_difference(Tensor::of<float>({1}), Tensor::of<float>({1, 2})), HasSubstr("float[1] and float[2]"));
  EXPECT_THAT(only_difference(Tensor::of<float>({1}), Tensor::of<double>({1})), HasSubstr("float[1] and double[1]"));
}

TEST_F(ComparedCheckpointsTest, NamesWhatOneAloneHasAndLeavesOutTheSettings) {
  const Tensor one = Tensor::scalar(1.0f), two = Tensor::scalar(2.0f);
  const CheckpointComparison comparison =
      compare({{"longhaul/conditions/net", one}, {"v", one}}, {{"longhaul/conditions/net", two}, {"w", one}});
  ASSERT_EQ(comparison.different.size(), 2u);
  EXPECT_EQ(comparison.different[0].name, "v");
  EXPECT_THAT(comparison.different[0].how, HasSubstr("only in "));
  EXPECT_EQ(comparison.different[1].name, "w");
  EXPECT_THAT(comparison.left_out, ElementsAre("longhaul/conditions/net"));
}

}  // namespace
}  // namespace longhaul
