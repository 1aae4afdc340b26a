#include "longhaul/base/nearest_name.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

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

// Comparing 200,000 names of 1,000 letters would take minutes.
TEST(NearestName, IsNotSearchedForAmongAllOfVeryManyAndVeryLongNames) {
  const std::string wanted(1000, 'a'), near = wanted + "b", far(1000, 'b');
  NearestName few(wanted), many(wanted);
  for (int i = 0; i < 10; ++i) few.offer(far);
  for (int i = 0; i < 200'000; ++i) many.offer(far);
  few.offer(near);
  many.offer(near);
  EXPECT_NE(few.hint(), "");
  EXPECT_EQ(many.hint(), "");
}

}  // namespace
}  // namespace longhaul
