#include "longhaul/console/checkpoints/checkpoint_contents.h"

#include <cmath>
#include <limits>

#include "longhaul/checkpoint/directory/element_stream.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointContentsTest : public CheckpointsTest {
 protected:
  CheckpointContentsTest() {
    write("m-1", {{"global_step", Tensor::scalar<int64_t>(1)},
                  {"net/b", Tensor::of<float>(Shape{2, 2}, {1, NAN, -INFINITY, 0})},
                  {"net/w", Tensor::of<double>({0, 1, 2, 3, 3})},
                  {"text", Tensor::of<std::string>({"a", "\x1b[2J"})}});
  }
  Report show(const std::string& name = "", bool with_statistics = false) {
    return show_contents(files_, {.path = path("m-1"), .name = name, .with_statistics = with_statistics}, {});
  }
};

TEST_F(CheckpointContentsTest, ListsNamesTypesShapesAndSizes) {
  const Report report = show();
  EXPECT_THAT(report.text, AllOf(HasSubstr("net/b        float   [2,2]  16 bytes"), HasSubstr("4 tensors, ")));
  EXPECT_EQ(report.json["tensors"].size(), 4u);
  EXPECT_EQ(report.json["tensors"][1]["shape"], Json({2, 2}));
  EXPECT_EQ(report.json["total_bytes"], 8 + 16 + 40 + 11);
}

TEST_F(CheckpointContentsTest, HasStatisticsOfAllIfToldTo) {
  const Report report = show("", true);
  const Json& b = report.json["tensors"][1];
  EXPECT_EQ(b["nan"], 1);
  EXPECT_EQ(b["infinite"], 1);
  EXPECT_EQ(b["zero"], 1);
  EXPECT_EQ(b["maximum"], 1);
  EXPECT_EQ(b["mean"], 0.5);
  EXPECT_THAT(report.text, AllOf(HasSubstr("minimum"), HasSubstr("-inf"), HasSubstr("1.8")));
}

TEST_F(CheckpointContentsTest, ASingleTensorHasAHistogram) {
  const Report report = show("net/w");
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("{0, 1, 2, 3, 3}"), HasSubstr("minimum 0  maximum 3  mean 1.8"), HasSubstr("2  ####")));
  const Json& tensor = report.json["tensors"][0];
  EXPECT_EQ(tensor["histogram"]["counts"].front(), 1);
  EXPECT_EQ(tensor["histogram"]["counts"].back(), 2);
}

TEST_F(CheckpointContentsTest, LargeIntegersAreExact) {
  write("m-1", {{"n", Tensor::of<int64_t>({(int64_t{1} << 62) + 1, -(int64_t{1} << 62) - 1})},
                {"u", Tensor::of<uint64_t>({std::numeric_limits<uint64_t>::max(), 1})}});
  EXPECT_THAT(show("n").text, HasSubstr("minimum -4611686018427387905  maximum 4611686018427387905"));
  EXPECT_EQ(show("u").json["tensors"][0]["maximum"], std::numeric_limits<uint64_t>::max());
}

TEST_F(CheckpointContentsTest, ARangeMayBeWiderThanADouble) {
  write("m-1", {{"w", Tensor::of<double>({-1.7e308, 1.7e308, 1.7e308, 1.7e308})}});
  const Report report = show("w");
  EXPECT_THAT(report.text, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf ")), HasSubstr("mean 8.5e+307")));
  const Json& counts = report.json["tensors"][0]["histogram"]["counts"];
  EXPECT_EQ(counts.front(), 1);
  EXPECT_EQ(counts.back(), 3);
}

TEST_F(CheckpointContentsTest, TakesAPattern) {
  EXPECT_EQ(show("net/*").json["tensors"].size(), 2u);
  EXPECT_EQ(show("net/[w]").json["tensors"].size(), 1u);
}

TEST_F(CheckpointContentsTest, StringsAndDamageAreShownHarmlessly) {
  EXPECT_THAT(show("text").text, AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(json_text(show("text").json), Not(HasSubstr("\x1b")));
}

TEST_F(CheckpointContentsTest, SuggestsTheNearestName) {
  try {
    show("net/x");
    FAIL();
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no tensor net/x"), HasSubstr("did you mean 'net/")));
  }
  EXPECT_THROW(show("x*"), NotFoundError);
}

TEST_F(CheckpointContentsTest, ANameOfTenMegabytesIsCut) {
  write("m-1", {{std::string(10 << 20, 'n'), Tensor::scalar(1.0f)}});
  EXPECT_LT(show().text.size(), 1000u);
  EXPECT_GT(json_text(show().json).size(), size_t{10} << 20);
}

TEST_F(CheckpointContentsTest, ReadsALargeTensorAPieceAtATime) {
  const size_t count = ElementStream::kPieceBytes / sizeof(float) * 2 + 3;
  write("m-1", {{"w", Tensor::of<float>(std::vector<float>(count, 2.0f))}});
  uint64_t last = 0;
  show_contents(files_, {.path = path("m-1"), .with_statistics = true}, {}, [&](uint64_t done, uint64_t total) {
    EXPECT_LE(done - last, ElementStream::kPieceBytes);
    EXPECT_EQ(total, count * sizeof(float));
    last = done;
  });
  EXPECT_EQ(last, count * sizeof(float));
}

}  // namespace
}  // namespace longhaul::console
