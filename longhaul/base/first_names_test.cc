#include "longhaul/base/first_names.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(FirstNames, AreAllWhereThereAreFew) {
  EXPECT_EQ(first_names({}), "");
  EXPECT_EQ(first_names({"a", "b"}), "a, b");
  EXPECT_EQ(first_names({"a", "b", "c"}, 3), "a, b, c");
}

TEST(FirstNames, AreTheFirstAndANumber) {
  EXPECT_EQ(first_names({"a", "b", "c", "d"}, 2), "a, b and 2 more");
  EXPECT_TRUE(first_names(std::vector<std::string>(23, "v")).ends_with(", v and 3 more"));
}

}  // namespace
}  // namespace longhaul
