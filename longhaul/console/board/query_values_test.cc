#include "longhaul/console/board/query_values.h"

#include <gmock/gmock.h>

#include <limits>

#include "longhaul/base/error.h"

namespace longhaul::console {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(QueryValues, AreNumbersOfTheirRange) {
  const HttpQuery query{{"run", "7"}, {"from", "-9223372036854775808"}, {"smoothing", "0.5"}, {"runs", "0,3,7"}};
  EXPECT_EQ(integer_in(query, "run", 0, 7), 7);
  EXPECT_EQ(integer_in(query, "from", std::numeric_limits<int64_t>::min(), 0), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(integer_in(query, "points", 1, 9, 5), 5);
  EXPECT_EQ(number_in(query, "smoothing", 0, 1, 0), 0.5);
  EXPECT_THAT(integers_in(query, "runs", 7, 3), ElementsAre(0, 3, 7));
}

TEST(QueryValues, AnythingElseIsRefusedByItsName) {
  for (const std::string text :
       {"", "-1", "8", "7x", "0x7", " 7", "7 ", "7.0", "1e3", "../7", "99999999999999999999"}) {
    EXPECT_THAT([&] { integer_in({{"run", text}}, "run", 0, 7); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("run=" + text + " must be a number from 0 to 7")));
  }
  EXPECT_THROW(integer_in({}, "run", 0, 7), InvalidArgumentError);
  for (const std::string text : {"nan", "inf", "-0.1", "1.5", "", "x"}) {
    EXPECT_THROW(number_in({{"smoothing", text}}, "smoothing", 0, 1, 0), InvalidArgumentError) << text;
  }
  for (const std::string text : {"", ",", "1,", ",1", "1,1", "1,9", "1,2,3,4", "1;2", "-1"}) {
    EXPECT_THROW(integers_in({{"runs", text}}, "runs", 7, 3), InvalidArgumentError) << text;
  }
}

}  // namespace
}  // namespace longhaul::console
