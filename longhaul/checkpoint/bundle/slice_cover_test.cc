#include "longhaul/checkpoint/bundle/slice_cover.h"

#include <gtest/gtest.h>

#include <random>

#include "longhaul/checkpoint/bundle/slice_fixture.h"

namespace longhaul {
namespace {

SliceCover covered(const TensorSlice& wanted, const std::vector<TensorSlice>& slices) {
  SliceCover cover(wanted);
  for (const TensorSlice& slice : slices) cover.add(slice);
  return cover;
}

TEST(SliceCover, KnowsWhenEachElementIsThereOnce) {
  const TensorSlice all = box({{0, 4}, {0, 6}});
  EXPECT_TRUE(covered(all, {all}).is_whole());
  EXPECT_TRUE(covered(all, {box({{0, 1}, {0, 6}}), box({{1, 3}, {0, 2}}), box({{1, 3}, {2, 4}})}).is_whole());
  EXPECT_FALSE(covered(all, {box({{0, 1}, {0, 6}}), box({{1, 3}, {0, 2}})}).is_whole());
  EXPECT_FALSE(covered(all, {}).is_whole());
}

// A pinwheel: no cut goes from one side to the other.
TEST(SliceCover, TakesSlicesThatNoCutDivides) {
  const TensorSlice all = box({{0, 3}, {0, 3}});
  EXPECT_TRUE(covered(all, {box({{0, 1}, {0, 2}}), box({{0, 2}, {2, 1}}), box({{2, 1}, {1, 2}}), box({{1, 2}, {0, 1}}),
                            box({{1, 1}, {1, 1}})})
                  .is_whole());
}

TEST(SliceCover, SeesAnOverlapAlsoWhereTheCountIsRight) {
  const TensorSlice all = box({{0, 4}});
  const SliceCover cover = covered(all, {box({{0, 2}}), box({{1, 2}})});
  EXPECT_EQ(cover.found(), 4);
  EXPECT_FALSE(cover.is_whole());
  EXPECT_TRUE(cover.overlaps());
  EXPECT_TRUE(covered(all, {all, all}).overlaps());
  EXPECT_FALSE(covered(all, {box({{0, 2}})}).overlaps());
}

TEST(SliceCover, LooksOnlyAtWhatIsWanted) {
  SliceCover cover(box({{2, 2}}));
  EXPECT_FALSE(cover.add(box({{0, 2}})));
  EXPECT_TRUE(cover.add(box({{1, 2}})));
  EXPECT_TRUE(cover.add(box({{3, 9}})));
  EXPECT_TRUE(cover.is_whole());
}

TEST(SliceCover, TakesTensorsWithoutElementsAndScalars) {
  EXPECT_TRUE(covered(box({{0, 0}, {0, 5}}), {}).is_whole());
  EXPECT_TRUE(covered(box({}), {box({})}).is_whole());
  EXPECT_FALSE(covered(box({}), {}).is_whole());
}

TEST(SliceCover, CountsNoFurtherThanItCan) {
  const int64_t huge = int64_t{1} << 62;
  SliceCover cover(box({{0, huge}}));
  for (int i = 0; i < 8; ++i) cover.add(box({{0, huge}}));
  EXPECT_EQ(cover.found(), INT64_MAX);
  EXPECT_TRUE(cover.overlaps());
}

// The same as counting each element, for boxes at random.
TEST(SliceCover, AgreesWithCounting) {
  std::mt19937 random(7);
  const auto some = [&](int most) { return static_cast<int64_t>(random() % static_cast<unsigned>(most)); };
  for (int round = 0; round < 4000; ++round) {
    const TensorSlice all = box({{0, 3}, {0, 3}});
    int counts[3][3] = {};
    std::vector<TensorSlice> slices;
    for (int64_t n = some(5); n >= 0; --n) {
      const int64_t y = some(3), x = some(3), height = 1 + some(static_cast<int>(3 - y)),
                    width = 1 + some(static_cast<int>(3 - x));
      slices.push_back(box({{y, height}, {x, width}}));
      for (int64_t i = y; i < y + height; ++i)
        for (int64_t j = x; j < x + width; ++j) ++counts[i][j];
    }
    bool once = true;
    for (const auto& row : counts)
      for (const int count : row) once = once && count == 1;
    EXPECT_EQ(covered(all, slices).is_whole(), once) << round;
  }
}

TEST(SliceCover, AHundredThousandSlicesTakeAMoment) {
  const int64_t slices = 100 * 1000;
  SliceCover cover(box({{0, slices}, {0, 8}}));
  for (int64_t i = 0; i < slices; ++i) cover.add(box({{i, 1}, {0, 8}}));
  EXPECT_TRUE(cover.is_whole());
}

}  // namespace
}  // namespace longhaul
