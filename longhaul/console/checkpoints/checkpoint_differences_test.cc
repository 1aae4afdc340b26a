#include "longhaul/console/checkpoints/checkpoint_differences.h"

#include <cmath>
#include <limits>

#include "longhaul/checkpoint/directory/element_stream.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointDifferencesTest : public CheckpointsTest {
 protected:
  Report compare(const Tensors& a, const Tensors& b, double tolerance = 0) {
    write("a", a);
    write("b", b);
    return compare_contents(files_, {.a = path("a"), .b = path("b"), .tolerance = tolerance}, {});
  }
};

TEST_F(CheckpointDifferencesTest, TheSameBitsAreTheSame) {
  const Tensors tensors{{"s", Tensor::scalar("x")}, {"w", Tensor::of<float>({1, NAN})}};
  const Report report = compare(tensors, tensors);
  EXPECT_TRUE(report.is_fine);
  EXPECT_THAT(report.text, HasSubstr("0 of 2 tensors differ"));
  EXPECT_EQ(report.json["equal"], 2);
}

TEST_F(CheckpointDifferencesTest, NamesTheLargestDifferenceAndItsPlace) {
  const Report report = compare({{"w", Tensor::of<float>(Shape{2, 2}, {1, 2, 3, 4})}},
                                {{"w", Tensor::of<float>(Shape{2, 2}, {1, 2.5, 3, 6})}});
  EXPECT_FALSE(report.is_fine);
  EXPECT_THAT(report.text, HasSubstr("2 of 4 differ, at most by 2: [1,1] is 4 and 6"));
  EXPECT_EQ(report.json["tensors"][0]["largest_difference"], 2);
}

TEST_F(CheckpointDifferencesTest, NamesWhatOneLacksAndOtherTypesAndShapes) {
  const Report report = compare({{"only_a", Tensor::scalar(1.0f)},
                                 {"shape", Tensor::of<float>({1})},
                                 {"text", Tensor::scalar("x")},
                                 {"type", Tensor::of<float>({1})}},
                                {{"only_b", Tensor::scalar(1.0f)},
                                 {"shape", Tensor::of<float>({1, 2})},
                                 {"text", Tensor::scalar("y")},
                                 {"type", Tensor::of<double>({1})}});
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("only in a"), HasSubstr("only in b"), HasSubstr("float[1] and float[2]"),
                    HasSubstr("float[1] and double[1]"), HasSubstr("\"y\""), HasSubstr("5 of 5 tensors differ")));
}

TEST_F(CheckpointDifferencesTest, ToleratesWhatItIsToldTo) {
  const Tensors a{{"w", Tensor::of<float>({1, 0, NAN})}}, b{{"w", Tensor::of<float>({1.25, -0.0f, -NAN})}};
  EXPECT_FALSE(compare(a, b).is_fine);
  EXPECT_FALSE(compare(a, b, 0.1).is_fine);
  EXPECT_TRUE(compare(a, b, 0.25).is_fine);
}

TEST_F(CheckpointDifferencesTest, IntegersAreComparedExactly) {
  constexpr int64_t kLarge = int64_t{1} << 62, kLeast = std::numeric_limits<int64_t>::min();
  const Tensors a{{"n", Tensor::of<int64_t>({kLarge, 7})}}, b{{"n", Tensor::of<int64_t>({kLarge + 100, 7})}};
  const Report report = compare(a, b, 99);
  EXPECT_FALSE(report.is_fine);
  EXPECT_THAT(report.text, HasSubstr("at most by 100: [0] is 4611686018427387904 and 4611686018427388004"));
  EXPECT_EQ(report.json["tensors"][0]["largest_difference"], 100);
  EXPECT_TRUE(compare(a, b, 100.5).is_fine);
  const Report ends = compare({{"n", Tensor::scalar(kLeast)}}, {{"n", Tensor::scalar(~kLeast)}}, 1e18);
  EXPECT_THAT(ends.text, HasSubstr("at most by 18446744073709551615"));
  EXPECT_TRUE(compare({{"n", Tensor::scalar(kLeast)}}, {{"n", Tensor::scalar(~kLeast)}}, 1e300).is_fine);
}

TEST_F(CheckpointDifferencesTest, FindsADifferenceBeyondTheFirstPiece) {
  std::vector<float> values(ElementStream::kPieceBytes / sizeof(float) + 10, 1.0f);
  const Tensor before = Tensor::of<float>(values);
  values.back() = 3;
  const Report report = compare({{"w", before}}, {{"w", Tensor::of<float>(values)}});
  EXPECT_EQ(report.json["tensors"][0]["at"], "[" + std::to_string(values.size() - 1) + "]");
}

TEST_F(CheckpointDifferencesTest, ACheckpointIsComparedWithItsExport) {
  write("a", {{"w", Tensor::of<float>({1, 2})}});
  export_state_dict(path("a"), path("a.pt"));
  EXPECT_TRUE(compare_contents(files_, {.a = path("a"), .b = path("a.pt")}, {}).is_fine);
}

}  // namespace
}  // namespace longhaul::console
