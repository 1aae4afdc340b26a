#include "longhaul/checkpoint/bundle/slice.h"

#include <gtest/gtest.h>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/slice_fixture.h"
#include "longhaul/checkpoint/genuine_test.h"

namespace longhaul {
namespace {

TEST(TensorSlice, IsReadFromTheTextOfSaveOperations) {  // CB-34
  const auto [shape, slice] = parse_shape_and_slice("5 10 -:0,1");
  EXPECT_EQ(shape, Shape({5, 10}));
  EXPECT_EQ(slice, box({{}, {0, 1}}));
  EXPECT_EQ(slice.to_string(), "-:0,1");
  for (const char* bad : {"5 10", "5 -:0,1", "5 10 -:0,11", "x -", "5 10 -:0", "5 -1,2", "5 0,-1", "5  -"}) {
    EXPECT_THROW(parse_shape_and_slice(bad), InvalidArgumentError) << bad;
  }
  EXPECT_EQ(parse_shape_and_slice("").first, Shape());
}

TEST(TensorSlice, KnowsWhenItIsTheWhole) {
  EXPECT_TRUE(TensorSlice::full(2).covers({5, 10}));
  EXPECT_TRUE(box({{0, 5}, {0, 10}}).covers({5, 10}));
  EXPECT_FALSE(box({{0, 5}, {1, 9}}).covers({5, 10}));
}

TEST(TensorSlice, StaysWithinItsTensor) {
  EXPECT_EQ(box({{}, {2, 3}}).within({5, 10}), box({{0, 5}, {2, 3}}));
  EXPECT_THROW(box({{}}).within({5, 10}), InvalidArgumentError);
  EXPECT_THROW(box({{4, 2}}).within({5}), InvalidArgumentError);
  EXPECT_THROW(box({{-1, 2}}).within({5}), InvalidArgumentError);
  EXPECT_THROW(box({{INT64_MAX, INT64_MAX}}).within({5}), InvalidArgumentError);
}

// NumIncreasing(0), String("ab"), NumIncreasing(2), then (0, -1) for the whole dimension and (0, 1): see the format
// page.
TEST(TensorSlice, HasAKeyThatSortsBeforeNames) {  // CB-31
  const std::string key = slice_key("ab", box({{}, {0, 1}}));
  EXPECT_EQ(key, testing::from_hex("00"
                                   "61620001"
                                   "0102"
                                   "807f"
                                   "8081"));
  EXPECT_LT(key, " ");
}

// Copies through the runs and compares with what indices say, for all pairs of boxes in a 3x4x2 tensor.
TEST(TensorSlice, CommonRunsCoverExactlyWhatIsCommon) {
  const Shape shape{3, 4, 2};
  std::vector<TensorSlice> boxes;
  for (int64_t a = 0; a < 3; ++a)
    for (int64_t b = 0; b < 4; ++b)
      for (int64_t c = 0; c < 2; ++c)
        for (int64_t l = 1; l <= 3 - a; ++l) boxes.push_back(box({{a, l}, {b, 4 - b}, {c, 2 - c}}));
  const auto index = [&](const TensorSlice& in, int64_t i, int64_t j, int64_t k) {
    const auto& e = in.extents;
    const bool inside = i >= e[0].start && i < e[0].start + e[0].length && j >= e[1].start &&
                        j < e[1].start + e[1].length && k >= e[2].start && k < e[2].start + e[2].length;
    return inside ? ((i - e[0].start) * e[1].length + j - e[1].start) * e[2].length + k - e[2].start : -1;
  };
  for (const auto& from : boxes) {
    for (const auto& to : boxes) {
      std::vector<std::pair<int64_t, int64_t>> wanted, got;
      for (int64_t n = 0; n < 24; ++n) {
        const int64_t i = index(from, n / 8, n / 2 % 4, n % 2), j = index(to, n / 8, n / 2 % 4, n % 2);
        if (i >= 0 && j >= 0) wanted.emplace_back(i, j);
      }
      for_each_common_run(from, to, [&](size_t i, size_t j, size_t count) {
        for (size_t n = 0; n < count; ++n) got.emplace_back(i + n, j + n);
      });
      ASSERT_EQ(got, wanted) << from.to_string() << " " << to.to_string();
      ASSERT_EQ(common_elements(from, to), static_cast<int64_t>(wanted.size()));
    }
  }
}

}  // namespace
}  // namespace longhaul
