#include "longhaul/base/nearest_name.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

namespace longhaul {
namespace {

TEST(NearestName, IsTheOneWithTheFewestChanges) {
  EXPECT_EQ(nearest_name_hint("hiden/weights", {"hidden/bias", "hidden/weights", "hidden/weights_1"}),
            "; did you mean 'hidden/weights'?");
  EXPECT_EQ(nearest_name_hint("Loss", {"lots", "loss"}), "; did you mean 'loss'?");
  EXPECT_EQ(nearest_name_hint("globalstep", {"local_step", "global_step"}), "; did you mean 'global_step'?");
}

TEST(NearestName, OfEqualsIsTheFirst) {
  EXPECT_EQ(nearest_name_hint("layer3", {"layer1", "layer2"}), "; did you mean 'layer1'?");
}

TEST(NearestName, MayLackItsScope) {
  EXPECT_EQ(nearest_name_hint("weights", {"bias", "model/hidden/weights"}), "; did you mean 'model/hidden/weights'?");
  EXPECT_EQ(nearest_name_hint("weights", {"model/weights", "weight"}), "; did you mean 'weight'?");
}

TEST(NearestName, IsNoneWhereNothingIsNear) {
  EXPECT_EQ(nearest_name_hint("accuracy", {"loss", "train", "accumulator_of_something"}), "");
  EXPECT_EQ(nearest_name_hint("x", {"y", "z"}), "") << "one letter for another is another name";
  EXPECT_EQ(nearest_name_hint("", {"a"}), "");
  EXPECT_EQ(nearest_name_hint("a", {}), "");
}

TEST(NearestName, OfVeryManyAndVeryLongNamesIsFoundInAFractionOfASecond) {
  const auto start = std::chrono::steady_clock::now();
  NearestName nearest(std::string(1000, 'a'));
  for (int i = 0; i < 200'000; ++i) nearest.offer(std::string(1000, 'b'));
  EXPECT_EQ(nearest.hint(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << "all of them take minutes";
}

}  // namespace
}  // namespace longhaul
